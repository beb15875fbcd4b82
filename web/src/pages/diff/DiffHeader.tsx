/** The heading of a diff: both rollouts with their outcomes, and how much of them differs. */
import { Link } from "@tanstack/react-router";
import type { RolloutAddress } from "#/api/rollouts";
import { writeAddress } from "#/api/rollouts";
import type { RolloutDiff, RolloutView } from "#/api/types";
import { Button, buttonClass, IconButton } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { PageHeader } from "#/design/Section";
import { Segmented } from "#/design/Segmented";
import { showControls } from "#/parts/ansiText";
import { formatCount, formatDuration, formatScore } from "#/parts/format";
import { OutcomeMark } from "#/parts/Outcome";
import { words } from "#/words";
import styles from "./DiffHeader.module.css";
import type { Sides } from "./DiffPage";
import type { PairsState } from "./usePairs";

type Props = { diff: RolloutDiff; sides: Sides; pairs: PairsState };

export function DiffHeader({ diff, sides, pairs }: Props) {
  const { first } = diff;
  return (
    <>
      <PageHeader
        title={words.diff.title}
        below={
          <span>
            {first === null ? words.diff.same : words.diff.differs(pairs.differing.length, diff.pairs.length)}
          </span>
        }
        actions={
          <>
            {first !== null && <DifferenceButtons pairs={pairs} first={first} />}
            <Segmented
              label={words.rollout.view}
              options={[
                { value: "rendered", label: words.rollout.views.rendered },
                { value: "raw", label: words.rollout.views.raw },
              ]}
              value={pairs.isRaw ? "raw" : "rendered"}
              onChange={(view) => pairs.setRaw(view === "raw")}
            />
            <Link
              to="/diff"
              search={{ a: writeAddress(sides.b), b: writeAddress(sides.a) }}
              className={buttonClass("plain", true)}
            >
              {words.diff.swap}
            </Link>
            <CopyButton text={() => location.href} label={words.copyLink} />
          </>
        }
      />
      <div className={styles.sides}>
        <Side name={words.diff.sideA} address={sides.a} view={diff.a} />
        <Side name={words.diff.sideB} address={sides.b} view={diff.b} />
      </div>
    </>
  );
}

function DifferenceButtons({ pairs, first }: { pairs: PairsState; first: number }) {
  const at = pairs.differing.indexOf(pairs.current);
  return (
    <>
      <Button small onClick={() => pairs.select(first)}>
        {words.diff.toFirst}
      </Button>
      <span className={styles.place}>
        <IconButton
          label={words.diff.keys.previousDifference}
          icon="arrowUp"
          onClick={() => pairs.jump(-1)}
        />
        {at < 0 ? "–" : formatCount(at + 1)} / {formatCount(pairs.differing.length)}
        <IconButton label={words.diff.keys.nextDifference} icon="arrowDown" onClick={() => pairs.jump(1)} />
      </span>
    </>
  );
}

function Side({ name, address, view }: { name: string; address: RolloutAddress; view: RolloutView }) {
  const { entry } = view;
  const { runId, taskKey, number } = address;
  return (
    <div className={styles.side}>
      <span className={styles.name}>{name}</span>
      <Link
        to="/runs/$runId/t/$taskKey/$number"
        params={{ runId, taskKey, number: String(number) }}
        className={styles.task}
      >
        {showControls(words.rollout.title(String(entry.task), number))}
      </Link>
      <OutcomeMark outcome={entry.outcome} />
      <span className={styles.reward}>{formatScore(entry.reward)}</span>
      <span className={styles.note}>{words.rollout.turns(entry.turns)}</span>
      {entry.seconds > 0 && <span className={styles.note}>{formatDuration(entry.seconds)}</span>}
      <Link to="/runs/$runId" params={{ runId }} className={styles.run}>
        {showControls(view.run_id)}
      </Link>
    </div>
  );
}
