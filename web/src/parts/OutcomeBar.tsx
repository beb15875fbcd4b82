/** How all rollouts ended: one bar in parts, each part named and counted below it. */
import type { ReactNode } from "react";
import { classes } from "#/design/classes";
import { words } from "#/words";
import { Chart } from "./Chart";
import styles from "./Chart.module.css";
import { formatCount, formatPercent } from "./format";
import { nameOutcome, OutcomeMark, toneOfOutcome } from "./Outcome";

type Props = {
  outcomes: Readonly<Record<string, number>>;
  planned: number | null;
  /** Makes each outcome a link to its rollouts. */
  link?: (outcome: string, children: ReactNode) => ReactNode;
};

export function OutcomeBar({ outcomes, planned, link = (_, children) => children }: Props) {
  const counted = Object.entries(outcomes).filter(([, count]) => count > 0);
  const settled = counted.reduce((sum, [, count]) => sum + count, 0);
  const all = Math.max(1, settled, planned ?? 0);
  const open = all - settled;
  const table = {
    head: [words.charts.outcome, words.charts.rollouts, words.charts.share],
    rows: counted.map(([outcome, count]) => [
      nameOutcome(outcome),
      formatCount(count),
      formatPercent(count / all),
    ]),
  };
  return (
    <Chart label={words.charts.outcomes} table={table} note={words.charts.settledOf(settled, planned)}>
      <div className={styles.stack} aria-hidden="true">
        {counted.map(([outcome, count]) => (
          <span
            key={outcome}
            className={classes(styles.part, styles[toneOfOutcome(outcome)])}
            style={{ flexGrow: count }}
            title={`${nameOutcome(outcome)}: ${formatCount(count)}`}
          />
        ))}
        {open > 0 && planned !== null && <span className={styles.part} style={{ flexGrow: open }} />}
      </div>
      <ul className={styles.legend}>
        {counted.map(([outcome, count]) => (
          <li key={outcome} className={styles.key} title={words.outcomeMeaning[outcome]}>
            {link(
              outcome,
              <>
                <OutcomeMark outcome={outcome} /> {formatCount(count)}
              </>,
            )}
          </li>
        ))}
      </ul>
    </Chart>
  );
}
