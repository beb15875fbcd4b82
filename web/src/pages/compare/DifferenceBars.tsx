/** The differences from the base with their intervals on one axis; what touches the line of 0 may be nothing. */
import { Fragment } from "react";
import type { ComparedMeasure } from "#/api/types";
import { Chart } from "#/parts/Chart";
import chart from "#/parts/Chart.module.css";
import { words } from "#/words";
import styles from "./DifferenceBars.module.css";
import { type ComparedPair, formatDifference, formatDifferences } from "./pairs";

const text = words.compare;

export function DifferenceBars({ pairs }: { pairs: readonly ComparedPair[] }) {
  const lines = pairs.flatMap(({ run, name, comparison }) => [
    { id: run, name, measure: comparison.reward },
    ...comparison.members.map((measure) => ({
      id: `${run}/${measure.member}`,
      name: pairs.length > 1 ? `${name} · ${measure.member}` : measure.member,
      measure,
    })),
  ]);
  const reach = findReach(lines.map(({ measure }) => measure));
  const table = {
    head: [words.charts.name, text.difference, words.charts.interval],
    rows: lines.map(({ name, measure }) => [
      name,
      formatDifference(measure.difference),
      measure.interval ? formatDifferences(measure.interval.low, measure.interval.high) : "–",
    ]),
  };
  return (
    <Chart label={text.differences} table={table} note={formatDifferences(-reach, reach)}>
      <div className={chart.intervals}>
        {lines.map(({ id, name, measure }) => (
          <Fragment key={id}>
            <span className={chart.intervalName}>{name}</span>
            <DifferenceBar measure={measure} reach={reach} />
            <span className={chart.intervalValue}>{formatDifference(measure.difference)}</span>
          </Fragment>
        ))}
      </div>
    </Chart>
  );
}

/** How far from 0 an axis must reach for all of some differences. */
export function findReach(measures: readonly ComparedMeasure[]): number {
  const ends = measures.flatMap(({ difference, interval }) => [difference, interval?.low, interval?.high]);
  const most = Math.max(0, ...ends.filter((end) => end != null).map(Math.abs));
  return most === 0 ? 1 : most * 1.08;
}

export function DifferenceBar({ measure, reach }: { measure: ComparedMeasure; reach: number }) {
  const { difference, interval } = measure;
  const place = (value: number) => `${50 + (50 * Math.min(reach, Math.max(-reach, value))) / reach}%`;
  return (
    <svg className={styles.bar} aria-hidden="true" focusable="false">
      <line className={styles.axis} x1="0" x2="100%" y1="50%" y2="50%" />
      <line className={styles.zero} x1="50%" x2="50%" y1="0" y2="100%" />
      {interval && (
        <line className={styles.band} x1={place(interval.low)} x2={place(interval.high)} y1="50%" y2="50%" />
      )}
      {difference !== null && (
        <line className={styles.tick} x1={place(difference)} x2={place(difference)} y1="15%" y2="85%" />
      )}
    </svg>
  );
}
