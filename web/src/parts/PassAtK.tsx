/** pass@k (any of k rollouts passes) and pass^k (all of them do), over k. */
import { words } from "#/words";
import { Chart } from "./Chart";
import styles from "./Chart.module.css";
import { formatPercent } from "./format";

type Curve = Readonly<Record<string, number>>;

const WIDTH = 480;
const HEIGHT = 160;
const LEFT = 34;
const BELOW = 18;
const TOP = 6;

export function readCurve(curve: Curve): { k: number; value: number }[] {
  return Object.entries(curve)
    .map(([k, value]) => ({ k: Number(k), value }))
    .filter(({ k, value }) => Number.isFinite(k) && Number.isFinite(value))
    .sort((a, b) => a.k - b.k);
}

export function PassAtK({ anyOf, allOf }: { anyOf: Curve; allOf: Curve }) {
  const any = readCurve(anyOf);
  const all = readCurve(allOf);
  const last = Math.max(2, ...any.map(({ k }) => k), ...all.map(({ k }) => k));
  const across = (k: number) => LEFT + ((WIDTH - LEFT - 8) * (k - 1)) / (last - 1);
  const down = (value: number) => TOP + (HEIGHT - BELOW - TOP) * (1 - value);
  const path = (points: { k: number; value: number }[]) =>
    points.map(({ k, value }, index) => `${index === 0 ? "M" : "L"}${across(k)} ${down(value)}`).join("");
  const byK = new Map(all.map(({ k, value }) => [k, value]));
  const table = {
    head: ["k", "pass@k", "pass^k"],
    rows: any.map(({ k, value }) => [k, formatPercent(value), formatPercent(byK.get(k))]),
  };
  const ks = any.length > 0 ? any.map(({ k }) => k) : all.map(({ k }) => k);
  return (
    <Chart label={words.charts.passAtK} table={table} note={<PassLegend />}>
      <svg
        className={styles.svg}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={words.charts.passAtKLabel}
      >
        {[0, 0.5, 1].map((value) => (
          <g key={value}>
            <line className={styles.grid} x1={LEFT} x2={WIDTH} y1={down(value)} y2={down(value)} />
            <text className={styles.text} x={LEFT - 6} y={down(value) + 4} textAnchor="end">
              {formatPercent(value)}
            </text>
          </g>
        ))}
        <path className={`${styles.curve} ${styles.second}`} d={path(all)} />
        <path className={styles.curve} d={path(any)} />
        <Points points={all} className={styles.secondPoint} across={across} down={down} name="pass^k" />
        <Points points={any} className={styles.point} across={across} down={down} name="pass@k" />
        {ks
          .filter((k) => ks.length <= 12 || k === 1 || k === last || (k & (k - 1)) === 0)
          .map((k) => (
            <text key={k} className={styles.text} x={across(k)} y={HEIGHT - 3} textAnchor="middle">
              {k}
            </text>
          ))}
      </svg>
    </Chart>
  );
}

type PointsProps = {
  points: { k: number; value: number }[];
  className: string | undefined;
  across: (k: number) => number;
  down: (value: number) => number;
  name: string;
};

const Points = ({ points, className, across, down, name }: PointsProps) =>
  points.map(({ k, value }) => (
    <circle key={k} className={className} cx={across(k)} cy={down(value)} r="3.5">
      <title>{`${name.replace("k", String(k))}: ${formatPercent(value)}`}</title>
    </circle>
  ));

const PassLegend = () => (
  <span className={styles.legend}>
    <span className={styles.key}>
      <svg viewBox="0 0 24 10" aria-hidden="true">
        <path className={styles.curve} d="M0 5h24" />
      </svg>
      {words.charts.anyPasses}
    </span>
    <span className={styles.key}>
      <svg viewBox="0 0 24 10" aria-hidden="true">
        <path className={`${styles.curve} ${styles.second}`} d="M0 5h24" />
      </svg>
      {words.charts.allPass}
    </span>
  </span>
);
