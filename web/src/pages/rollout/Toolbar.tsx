/** How a trace is shown: rendered, raw or as sent; which kinds of steps; what is sought; where the reader is. */
import { useRef } from "react";
import { useKeys } from "#/app/keys";
import { IconButton } from "#/design/Button";
import { Checkbox } from "#/design/Checkbox";
import { Segmented } from "#/design/Segmented";
import { TextField } from "#/design/TextField";
import { formatCount } from "#/parts/format";
import { SHOWN_KINDS } from "#/trace/steps";
import { words } from "#/words";
import { toggleKind, VIEWS } from "./search";
import styles from "./Toolbar.module.css";
import { type Steps, useStepKeys } from "./useSteps";

export function Toolbar({ steps, isWhole }: { steps: Steps; isWhole: boolean }) {
  useStepKeys(steps);
  return (
    <div className={styles.bar}>
      <Segmented
        label={words.rollout.view}
        options={VIEWS.map((value) => ({ value, label: words.rollout.views[value] }))}
        value={steps.view}
        onChange={steps.setView}
      />
      {steps.view !== "sent" && <KindsAndFind steps={steps} />}
      <div className={styles.place}>
        <IconButton label={words.rollout.keys.previousStep} icon="arrowUp" onClick={() => steps.move(-1)} />
        <span className={styles.count} title={words.rollout.stepOf}>
          {steps.visible.length === 0 ? 0 : formatCount(steps.position + 1)} /{" "}
          {isWhole ? formatCount(steps.visible.length) : "…"}
        </span>
        <IconButton label={words.rollout.keys.nextStep} icon="arrowDown" onClick={() => steps.move(1)} />
      </div>
    </div>
  );
}

/** A call as it was sent has all of it, and a search of its own. */
function KindsAndFind({ steps }: { steps: Steps }) {
  return (
    <>
      <div className={styles.kinds} role="group" aria-label={words.rollout.show}>
        {SHOWN_KINDS.map((kind) => (
          <Checkbox
            key={kind}
            checked={steps.shown.has(kind)}
            onChange={() => steps.show(toggleKind(steps.shown, kind))}
          >
            {words.rollout.kinds[kind]}
          </Checkbox>
        ))}
      </div>
      <FindField steps={steps} />
    </>
  );
}

function FindField({ steps }: { steps: Steps }) {
  const { find, jump } = steps;
  const box = useRef<HTMLDivElement>(null);
  useKeys([
    { keys: "/", label: words.rollout.find, run: () => box.current?.querySelector("input")?.focus() },
  ]);
  const at = find.matches.indexOf(steps.current);
  return (
    <div ref={box} className={styles.find}>
      <TextField
        label={words.rollout.find}
        hideLabel
        icon="search"
        type="search"
        placeholder={words.lines.find}
        value={find.typed}
        onChange={(event) => find.setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") jump(event.shiftKey ? -1 : 1);
          if (event.key === "Escape") {
            find.setText("");
            event.currentTarget.blur();
          }
        }}
      />
      {find.text && (
        <span className={styles.matches} role="status">
          {find.error
            ? words.errors.failedTitle
            : find.isLoading
              ? "…"
              : words.rollout.matches(at + 1, find.matches.length)}
        </span>
      )}
    </div>
  );
}
