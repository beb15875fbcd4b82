/** One step of a trace: who spoke, what it took, and what was said once that has been loaded. */
import type { ReactNode } from "react";
import type { RolloutAddress } from "#/api/rollouts";
import type { CallBrief, EventBrief, EventContent } from "#/api/types";
import { Badge } from "#/design/Badge";
import { classes } from "#/design/classes";
import { Icon } from "#/design/Icon";
import { showControls } from "#/parts/ansiText";
import { formatCompact, formatDuration, formatMoney } from "#/parts/format";
import { words } from "#/words";
import { StepBody } from "./StepBody";
import styles from "./StepCard.module.css";
import { hasFailed, type ShownKinds } from "./steps";

type Props = {
  address: RolloutAddress;
  brief: EventBrief;
  content: EventContent | undefined;
  shown: ShownKinds;
  isRaw: boolean;
  isCurrent: boolean;
  isFolded: boolean;
  onFold: () => void;
  onSelect: () => void;
  /** The link to this step. */
  link: ReactNode;
  /** Opens its model call as it was sent. */
  sentLink?: ReactNode;
};

export function StepCard(props: Props) {
  const { address, brief, content, shown, isRaw, isCurrent, isFolded, onSelect } = props;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: j and k choose a step by keyboard
    <article
      className={classes(styles.step, toneOf(brief), isCurrent && styles.current)}
      aria-current={isCurrent ? "step" : undefined}
      aria-label={words.trace.step(brief.index, nameRole(brief))}
      onClick={(event) => isPlainClick(event) && onSelect()}
    >
      <StepHead {...props} />
      {brief.call?.error && <p className={styles.error}>{showControls(brief.call.error)}</p>}
      {!isFolded && !content && <p className={styles.preview}>{describe(brief)}</p>}
      {!isFolded && content && (
        <StepBody address={address} brief={brief} content={content} shown={shown} isRaw={isRaw} />
      )}
    </article>
  );
}

function StepHead({ brief, isFolded, onFold, link, sentLink }: Props) {
  return (
    <header className={styles.head}>
      <button
        type="button"
        className={styles.fold}
        aria-expanded={!isFolded}
        aria-label={isFolded ? words.trace.unfold : words.trace.fold}
        onClick={onFold}
      >
        <Icon name={isFolded ? "chevronRight" : "chevronDown"} size={14} />
      </button>
      <h3 className={styles.role}>{nameRole(brief)}</h3>
      {brief.turn !== null && <span className={styles.note}>{words.trace.turn(brief.turn)}</span>}
      {brief.in_prompt && <span className={styles.note}>{words.trace.prompt}</span>}
      {hasFailed(brief) && (
        <Badge tone="bad" icon="xCircle">
          {words.trace.failed}
        </Badge>
      )}
      {isFolded && <p className={styles.preview}>{describe(brief)}</p>}
      <span className={styles.figures}>
        {brief.call && <CallFigures call={brief.call} />}
        {brief.call && sentLink}
        {link}
      </span>
    </header>
  );
}

function CallFigures({ call }: { call: CallBrief }) {
  const { input_tokens = 0, output_tokens = 0 } = call.usage;
  const reason = call.finish_reason;
  return (
    <>
      {call.role !== "agent" && <span>{showControls(call.model)}</span>}
      {reason && reason !== "stop" && reason !== "tool_calls" && <span>{showControls(reason)}</span>}
      {input_tokens + output_tokens > 0 && (
        <span title={words.trace.tokens}>
          {formatCompact(input_tokens)} → {formatCompact(output_tokens)}
        </span>
      )}
      {call.cost_usd !== null && <span>{formatMoney(call.cost_usd)}</span>}
      {call.seconds > 0 && <span>{formatDuration(call.seconds)}</span>}
    </>
  );
}

export const nameRole = (brief: EventBrief): string =>
  brief.type === "call" && brief.role === "agent"
    ? words.trace.failedCall
    : (words.trace.roles[brief.role] ?? showControls(brief.role));

/** A step in one line. */
export function describe(brief: EventBrief): string {
  if (brief.preview) return showControls(brief.preview);
  const tools = brief.tools.map((tool) => `${tool.name}(${tool.arguments_preview})`).join(", ");
  return showControls(tools) || (brief.reasoning_size > 0 ? words.trace.onlyReasoning : words.trace.empty);
}

const TONES: Record<string, string | undefined> = {
  system: styles.system,
  developer: styles.system,
  user: styles.user,
  assistant: styles.assistant,
  tool: styles.tool,
};

const toneOf = (brief: EventBrief): string | undefined =>
  hasFailed(brief) && brief.type === "call" ? styles.bad : (TONES[brief.role] ?? styles.other);

/** Not on a control, and not the end of selecting text. */
const isPlainClick = (event: React.MouseEvent): boolean =>
  (event.target as Element).closest("a, button, input, summary, [role=dialog]") === null &&
  (getSelection()?.toString() ?? "") === "";
