/** A mean with its interval and coverage: as figures, and as a bar on which other runs can be compared. */
import type { Interval, RunScore } from "#/api/types";
import { Icon } from "#/design/Icon";
import { nameIntervalKind, words } from "#/words";
import { formatPercent, formatRange, formatScore } from "./format";
import styles from "./Score.module.css";

export type Domain = readonly [low: number, high: number];
const UNIT: Domain = [0, 1];

type Estimate = { mean: number | null; interval: Interval | null };

/** The range that all of some scores fit on; 0 to 1 unless a score lies beyond. */
export function findDomain(scores: readonly (Estimate | null | undefined)[]): Domain {
  const values = scores.flatMap((score) => [score?.mean, score?.interval?.low, score?.interval?.high]);
  const finite = values.filter((value): value is number => value != null && Number.isFinite(value));
  const [low, high] = [Math.min(0, ...finite), Math.max(1, ...finite)];
  return [low, high];
}

/** The range of each environment's scores: those of others may be on another scale. */
export function findDomains(runs: readonly { environment: string; score?: RunScore | null }[]) {
  const scores = new Map<string, (RunScore | null | undefined)[]>();
  for (const { environment, score } of runs)
    scores.set(environment, [...(scores.get(environment) ?? []), score]);
  return new Map([...scores].map(([environment, all]) => [environment, findDomain(all)]));
}

/** For table cells: the mean, the bar, and what was not scored. */
type ScoreProps = { score: RunScore | null | undefined; domain?: Domain | undefined };

export function Score({ score, domain = UNIT }: ScoreProps) {
  if (score?.mean == null) return <span className={styles.none}>–</span>;
  const { mean, interval, coverage } = score;
  return (
    <span className={styles.score} title={describeScore(score)}>
      <span className={styles.mean}>{formatScore(mean)}</span>
      <IntervalBar mean={mean} interval={interval} domain={domain} />
      {coverage != null && coverage < 1 && (
        <span className={styles.partial} title={words.score.covered(formatPercent(coverage))}>
          <Icon name="half" size={12} />
          {formatPercent(coverage)}
        </span>
      )}
    </span>
  );
}

export function describeScore(score: RunScore | null | undefined): string {
  if (score?.mean == null) return words.score.none;
  const mean = formatScore(score.mean);
  if (!score.interval) return `${words.score.mean} ${mean}. ${words.score.noInterval}.`;
  const { low, high, level, kind } = score.interval;
  return `${words.score.describe(mean, formatScore(low), formatScore(high), formatPercent(level))} (${nameIntervalKind(kind)})`;
}

type BarProps = { mean: number; interval: Interval | null | undefined; domain?: Domain; wide?: boolean };

/** The interval as a band and the mean as a tick, on the line from the domain's low to its high. */
export function IntervalBar({ mean, interval, domain = UNIT, wide = false }: BarProps) {
  const [low, high] = domain;
  const place = (value: number) =>
    `${(100 * (Math.min(high, Math.max(low, value)) - low)) / (high - low || 1)}%`;
  const from = place(interval?.low ?? mean);
  const to = place(interval?.high ?? mean);
  return (
    <svg className={wide ? styles.wideBar : styles.bar} aria-hidden="true" focusable="false">
      <line className={styles.axis} x1="0" x2="100%" y1="50%" y2="50%" />
      {interval && <line className={styles.band} x1={from} x2={to} y1="50%" y2="50%" />}
      <line className={styles.tick} x1={place(mean)} x2={place(mean)} y1="15%" y2="85%" />
    </svg>
  );
}

export function IntervalText({ interval }: { interval: Interval | null | undefined }) {
  if (!interval) return <span className={styles.note}>{words.score.noInterval}</span>;
  return (
    <span>
      {formatRange(interval.low, interval.high)}{" "}
      <span className={styles.note}>
        {words.score.interval(formatPercent(interval.level), nameIntervalKind(interval.kind))}
      </span>
    </span>
  );
}
