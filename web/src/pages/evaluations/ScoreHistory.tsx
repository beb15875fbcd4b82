/** Scores with their intervals, in a column for each version; a colour and a shape for each model. */
import type { RunInfo } from "#/api/types";
import { Chart } from "#/parts/Chart";
import chart from "#/parts/Chart.module.css";
import { formatNumber, formatRange, formatScore, formatTime } from "#/parts/format";
import { Marker, seriesClass } from "#/parts/Marker";
import { PageLink } from "#/parts/PageLink";
import { describeScore, findDomain } from "#/parts/Score";
import { words } from "#/words";
import { groupByVersion, type HistoryGroup, nameContender, nameVersion } from "./history";
import styles from "./ScoreHistory.module.css";

const text = words.evaluations;
const WIDTH = 960;
const HEIGHT = 280;
const LEFT = 40;
const TOP = 12;
const BELOW = 24;
const GAP = 1;

type Props = { runs: readonly RunInfo[]; contenders: readonly string[]; total: number };

export function ScoreHistory({ runs, contenders, total }: Props) {
  const groups = groupByVersion(runs, contenders);
  const places = layOut(groups);
  const [low, high] = findDomain(runs.map((run) => run.score));
  const up = (value: number) => TOP + (HEIGHT - TOP - BELOW) * (1 - (value - low) / (high - low));
  const table = {
    head: [
      text.version,
      words.runs.columns.model,
      words.runs.columns.score,
      words.charts.interval,
      words.runs.columns.created,
    ],
    rows: groups.flatMap((group) =>
      group.runs.map((run) => [
        group.label,
        nameContender(run),
        formatScore(run.score?.mean),
        run.score?.interval ? formatRange(run.score.interval.low, run.score.interval.high) : "–",
        formatTime(run.created_at),
      ]),
    ),
  };
  return (
    <Chart label={text.chart} table={table} note={text.chartNote(runs.length, total)}>
      <div className={styles.scroll}>
        <svg
          className={styles.plot}
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          role="group"
          aria-label={text.chartLabel}
        >
          {[low, (low + high) / 2, high].map((value) => (
            <g key={value}>
              <line className={chart.grid} x1={LEFT} x2={WIDTH} y1={up(value)} y2={up(value)} />
              <text className={chart.text} x={LEFT - 6} y={up(value) + 4} textAnchor="end">
                {formatNumber(value, 2)}
              </text>
            </g>
          ))}
          {places.columns.map((column) => (
            <g key={column.version}>
              <line className={chart.grid} x1={column.from} x2={column.from} y1={TOP} y2={HEIGHT - 6} />
              <text
                className={chart.text}
                x={(column.from + column.to) / 2}
                y={HEIGHT - 6}
                textAnchor="middle"
              >
                {column.label}
              </text>
            </g>
          ))}
          {groups.flatMap((group) =>
            group.runs.map((run) => (
              <Point
                key={run.id}
                run={run}
                x={places.across.get(run.id) ?? LEFT}
                up={up}
                series={contenders.indexOf(nameContender(run))}
              />
            )),
          )}
        </svg>
      </div>
      <div className={chart.legend}>
        {contenders.map((name, index) => (
          <span key={name} className={chart.key}>
            <svg viewBox="0 0 24 10" aria-hidden="true">
              <Marker series={index} x={12} y={5} r={4} />
            </svg>
            {name}
          </span>
        ))}
      </div>
    </Chart>
  );
}

type PointProps = { run: RunInfo; x: number; up: (value: number) => number; series: number };

function Point({ run, x, up, series }: PointProps) {
  const { score } = run;
  if (score?.mean == null) return null;
  const name = `${nameContender(run)}, ${nameVersion(run)}: ${describeScore(score)}, ${formatTime(run.created_at)}`;
  return (
    <PageLink href={`/runs/${encodeURIComponent(run.id)}`} label={name}>
      {score.interval && (
        <line
          className={`${styles.whisker} ${seriesClass(series)}`}
          x1={x}
          x2={x}
          y1={up(score.interval.low)}
          y2={up(score.interval.high)}
        />
      )}
      <Marker series={series} x={x} y={up(score.mean)} r={5} title={name} />
    </PageLink>
  );
}

/** A column for each version, as wide as its runs need. */
function layOut(groups: readonly HistoryGroup[]) {
  const steps = groups.reduce((sum, group) => sum + group.runs.length + GAP, 0) || 1;
  const step = (WIDTH - LEFT) / steps;
  const across = new Map<string, number>();
  let from = LEFT;
  const columns = groups.map((group) => {
    const to = from + (group.runs.length + GAP) * step;
    group.runs.forEach((run, index) => {
      across.set(run.id, from + (index + 1) * step);
    });
    const column = { version: group.version, label: group.label, from, to };
    from = to;
    return column;
  });
  return { columns, across };
}
