/** Where the time of a rollout went: its phases, and on them every model call; a click leads to its step. */
import { isWhole } from "#/api/rollouts";
import type { RolloutView } from "#/api/types";
import { classes } from "#/design/classes";
import { formatDuration } from "#/parts/format";
import { words } from "#/words";
import styles from "./TimingBar.module.css";
import { buildTimeline, type CallStretch } from "./timing";

const percent = (share: number): string => `${(100 * share).toFixed(3)}%`;

export function TimingBar({ view, onStep }: { view: RolloutView; onStep: (index: number) => void }) {
  const timeline = buildTimeline(view.timing, isWhole(view) ? view.events : []);
  if (!timeline) return null;
  const text = words.rollout.timing;
  return (
    <div className={styles.bar}>
      <svg
        className={styles.drawing}
        role="img"
        aria-label={text.label(formatDuration(timeline.model), formatDuration(timeline.total))}
      >
        {timeline.phases.map((phase) => (
          <rect
            key={phase.name}
            className={styles[phase.name]}
            x={percent(phase.from)}
            width={percent(phase.to - phase.from)}
            y="0"
            height="100%"
          >
            <title>{text[phase.name]}</title>
          </rect>
        ))}
        {timeline.calls.map((call) => (
          <Call key={call.step} call={call} onStep={onStep} />
        ))}
      </svg>
      <ul className={styles.legend}>
        {timeline.phases.map((phase) => (
          <li key={phase.name}>
            <span className={classes(styles.swatch, styles[phase.name])} />
            {text[phase.name]} {formatDuration((phase.to - phase.from) * timeline.total)}
          </li>
        ))}
        <li>
          <span className={classes(styles.swatch, styles.agent)} />
          {text.model} {formatDuration(timeline.model)}
        </li>
      </ul>
    </div>
  );
}

/** The keyboard reaches the same steps with j and k, and by the outline. */
function Call({ call, onStep }: { call: CallStretch; onStep: (index: number) => void }) {
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: see above
    <rect
      className={classes(styles.call, styles[call.kind])}
      x={percent(call.from)}
      width={percent(Math.max(0.002, call.to - call.from))}
      y="25%"
      height="50%"
      onClick={() => onStep(call.step)}
    >
      <title>{`#${call.step}`}</title>
    </rect>
  );
}
