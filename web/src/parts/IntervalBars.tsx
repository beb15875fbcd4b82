/** Means with their intervals below each other on one axis, so that overlaps are seen. */
import { Fragment, type ReactNode } from "react";
import type { Interval } from "#/api/types";
import { words } from "#/words";
import { Chart } from "./Chart";
import styles from "./Chart.module.css";
import { formatRange, formatScore } from "./format";
import { findDomain, IntervalBar } from "./Score";

export type IntervalLine = { id: string; name: ReactNode; mean: number | null; interval: Interval | null };

/** `unlike` lines have different units: each that exceeds 0 to 1 gets an axis of its own. */
export function IntervalBars({
  lines,
  label,
  unlike = false,
}: {
  lines: readonly IntervalLine[];
  label: string;
  unlike?: boolean;
}) {
  const table = {
    head: [words.charts.name, words.score.mean, words.charts.interval],
    rows: lines.map((line) => [
      line.name,
      formatScore(line.mean),
      line.interval ? formatRange(line.interval.low, line.interval.high) : "–",
    ]),
  };
  const shared = findDomain(lines);
  const note = unlike ? words.charts.axes : formatRange(...shared);
  return (
    <Chart label={label} table={table} note={note}>
      <div className={styles.intervals}>
        {lines.map((line) => (
          <Fragment key={line.id}>
            <span className={styles.intervalName}>{line.name}</span>
            {line.mean === null ? (
              <span className={styles.faint}>–</span>
            ) : (
              <IntervalBar
                wide
                mean={line.mean}
                interval={line.interval}
                domain={unlike ? findDomain([line]) : shared}
              />
            )}
            <span className={styles.intervalValue}>
              {formatScore(line.mean)}{" "}
              {line.interval && (
                <span className={styles.faint}>{formatRange(line.interval.low, line.interval.high)}</span>
              )}
            </span>
          </Fragment>
        ))}
      </div>
    </Chart>
  );
}
