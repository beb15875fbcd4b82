/** What the run says, on one line: score, interval and its kind, coverage, bounds. */
import type { ReactNode } from "react";
import { isActive } from "#/api/runs";
import type { RunInfo, Summary } from "#/api/types";
import { Icon } from "#/design/Icon";
import { formatCount, formatPercent, formatRange, formatScore } from "#/parts/format";
import { IntervalBar } from "#/parts/Score";
import { nameIntervalKind, plural, words } from "#/words";
import styles from "./DecisionLine.module.css";

export function DecisionLine({ run, summary }: { run: RunInfo; summary: Summary }) {
  const { mean, interval, n } = summary.reward;
  const domain = [
    Math.min(0, interval?.low ?? 0, mean ?? 0),
    Math.max(1, interval?.high ?? 1, mean ?? 1),
  ] as const;
  return (
    <section className={styles.line} aria-label={words.run.result}>
      <Figure
        name={isActive(run.status) ? words.run.scoreSoFar : words.run.score}
        note={words.run.overTasks(n)}
        large
      >
        {formatScore(mean)}
      </Figure>
      <div className={styles.interval}>
        <Figure
          name={interval ? words.run.interval(formatPercent(interval.level)) : words.run.intervalTitle}
          note={interval ? nameIntervalKind(interval.kind) : words.score.noInterval}
        >
          {interval ? formatRange(interval.low, interval.high) : "–"}
        </Figure>
        {mean !== null && <IntervalBar wide mean={mean} interval={interval} domain={domain} />}
      </div>
      <Figure name={words.run.coverage} note={<CoverageNote summary={summary} run={run} />}>
        {formatPercent(summary.coverage)}
      </Figure>
      <Figure
        name={words.run.bounds}
        note={
          summary.bounds
            ? words.run.boundsNote
            : summary.coverage === 1
              ? words.run.boundsNotNeeded
              : summary.scored === 0
                ? words.run.boundsNothing
                : words.run.boundsUnknown
        }
      >
        {summary.bounds ? formatRange(summary.bounds.low, summary.bounds.high) : "–"}
      </Figure>
    </section>
  );
}

function CoverageNote({ summary, run }: { summary: Summary; run: RunInfo }) {
  const counts = words.run.scoredOf(
    formatCount(summary.scored),
    summary.planned === null ? null : formatCount(summary.planned),
  );
  const isPartial = summary.coverage !== null && summary.coverage < 1 && !isActive(run.status);
  return (
    <>
      {isPartial && (
        <span className={styles.warn}>
          <Icon name="alert" size={12} />
        </span>
      )}
      {counts}
      {summary.timed_out > 0 && `, ${plural(summary.timed_out, "timeout")}`}
    </>
  );
}

function Figure(props: { name: string; note: ReactNode; children: ReactNode; large?: boolean }) {
  return (
    <div className={styles.figure}>
      <span className={styles.name}>{props.name}</span>
      <span className={props.large ? styles.large : styles.value}>{props.children}</span>
      <span className={styles.note}>{props.note}</span>
    </div>
  );
}
