/** Means with their intervals below each other on one axis, so that overlaps are seen. */
import { Fragment, type ReactNode } from "react";
import type { Interval } from "#/api/types";
import { words } from "#/words";
import { Chart } from "./Chart";
import styles from "./Chart.module.css";
import { formatRange, formatScore } from "./format";
import { type Domain, IntervalBar } from "./Score";

export type IntervalLine = { id: string; name: ReactNode; mean: number | null; interval: Interval | null };

export function IntervalBars({
  lines,
  label,
  domain,
}: {
  lines: readonly IntervalLine[];
  label: string;
  domain?: Domain;
}) {
  const table = {
    head: [words.charts.name, words.score.mean, words.charts.interval],
    rows: lines.map((line) => [
      line.name,
      formatScore(line.mean),
      line.interval ? formatRange(line.interval.low, line.interval.high) : "–",
    ]),
  };
  const range = domain ?? findRange(lines);
  return (
    <Chart label={label} table={table} note={`${formatScore(range[0])} – ${formatScore(range[1])}`}>
      <div className={styles.intervals}>
        {lines.map((line) => (
          <Fragment key={line.id}>
            <span className={styles.intervalName}>{line.name}</span>
            {line.mean === null ? (
              <span className={styles.faint}>–</span>
            ) : (
              <IntervalBar wide mean={line.mean} interval={line.interval} domain={range} />
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

function findRange(lines: readonly IntervalLine[]): Domain {
  const values = lines
    .flatMap(({ mean, interval }) => [mean, interval?.low, interval?.high])
    .filter((value) => value != null);
  return [Math.min(0, ...values), Math.max(1, ...values)];
}
