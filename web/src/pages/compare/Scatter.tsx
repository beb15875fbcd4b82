/** Each task as a point: across, its mean in the base; up, in another run. Above the line it gained. */
import type { ScatterPoint } from "#/api/types";
import { Chart } from "#/parts/Chart";
import chart from "#/parts/Chart.module.css";
import { formatCount, formatScore } from "#/parts/format";
import { Marker } from "#/parts/Marker";
import { words } from "#/words";
import styles from "./Scatter.module.css";

const SIZE = 360;
const LEFT = 56;
const BELOW = 34;
const EDGE = 4;
const LARGEST = 14;
const SMALLEST = 3;
/** So that points at the ends of the range do not cover the numbers below it. */
const INSET = LARGEST + 2;
const text = words.compare;

type Props = {
  points: readonly ScatterPoint[];
  base: string;
  nameOf: (id: string) => string;
  measure: string;
};

export function Scatter({ points, base, nameOf, measure }: Props) {
  const runs = [...new Set(points.map((point) => point.run))];
  const [low, high] = findRange(points);
  const span = high - low || 1;
  const width = SIZE - LEFT - EDGE;
  const height = SIZE - BELOW - EDGE;
  const across = (value: number) => LEFT + INSET + ((width - 2 * INSET) * (value - low)) / span;
  const up = (value: number) => EDGE + INSET + (height - 2 * INSET) * (1 - (value - low) / span);
  const most = Math.max(1, ...points.map((point) => point.tasks));
  const radius = (tasks: number) => Math.max(SMALLEST, LARGEST * Math.sqrt(tasks / most));
  const ticks = [low, (low + high) / 2, high];
  const first = runs[0];
  const tasks = points.filter((point) => point.run === first).reduce((sum, point) => sum + point.tasks, 0);
  const table = {
    head: [text.scatterTable.run, text.scatterTable.base, text.scatterTable.mean, text.scatterTable.tasks],
    rows: points.map((point) => [
      nameOf(point.run),
      formatScore(point.base_mean),
      formatScore(point.mean),
      formatCount(point.tasks),
    ]),
  };
  return (
    <Chart label={text.scatter} table={table} note={text.scatterNote(tasks)}>
      <svg
        className={styles.plot}
        viewBox={`0 0 ${SIZE} ${SIZE}`}
        role="img"
        aria-label={text.scatterLabel(measure, base)}
      >
        {ticks.map((value) => (
          <g key={value}>
            <line className={chart.grid} x1={LEFT} x2={SIZE - EDGE} y1={up(value)} y2={up(value)} />
            <line className={chart.grid} x1={across(value)} x2={across(value)} y1={EDGE} y2={SIZE - BELOW} />
            <text className={chart.text} x={LEFT - 6} y={up(value) + 4} textAnchor="end">
              {formatScore(value)}
            </text>
            <text className={chart.text} x={across(value)} y={SIZE - BELOW + 15} textAnchor="middle">
              {formatScore(value)}
            </text>
          </g>
        ))}
        <line className={chart.marker} x1={across(low)} y1={up(low)} x2={across(high)} y2={up(high)} />
        <text className={chart.text} x={LEFT + width / 2} y={SIZE - 3} textAnchor="middle">
          {text.inBase(base)}
        </text>
        {points.map((point) => (
          <g key={`${point.run}/${point.base_mean}/${point.mean}`}>
            <Marker
              series={runs.indexOf(point.run)}
              x={across(point.base_mean)}
              y={up(point.mean)}
              r={radius(point.tasks)}
              title={text.pointTitle(
                nameOf(point.run),
                formatScore(point.base_mean),
                formatScore(point.mean),
                point.tasks,
              )}
            />
            {runs.length === 1 && radius(point.tasks) >= 9 && (
              <text
                className={styles.count}
                x={across(point.base_mean)}
                y={up(point.mean) + 4}
                textAnchor="middle"
              >
                {formatCount(point.tasks)}
              </text>
            )}
          </g>
        ))}
      </svg>
      <div className={chart.legend}>
        {runs.map((run, index) => (
          <span key={run} className={chart.key}>
            <svg viewBox="0 0 24 10" aria-hidden="true">
              <Marker series={index} x={12} y={5} r={4} />
            </svg>
            {nameOf(run)}
          </span>
        ))}
      </div>
    </Chart>
  );
}

/** From 0 to 1, unless a mean lies beyond. */
function findRange(points: readonly ScatterPoint[]): [low: number, high: number] {
  const values = points.flatMap((point) => [point.base_mean, point.mean]);
  return [Math.min(0, ...values), Math.max(1, ...values)];
}
