/** How a quantity is distributed: one bar per bin, the mean as a dashed line. */
import type { Distribution } from "#/api/types";
import { words } from "#/words";
import { Chart } from "./Chart";
import styles from "./Chart.module.css";
import { formatCount, formatScore } from "./format";

type Props = {
  distribution: Distribution;
  label: string;
  format?: (value: number) => string;
  height?: number;
};

const WIDTH = 480;
const BELOW = 18;

export function Histogram({ distribution, label, format = formatScore, height = 140 }: Props) {
  const { bins, mean, n, missing } = distribution;
  const most = Math.max(1, ...bins.map((bin) => bin.count));
  const low = bins[0]?.low ?? 0;
  const high = bins.at(-1)?.high ?? 1;
  const across = (value: number) => (high === low ? WIDTH / 2 : (WIDTH * (value - low)) / (high - low));
  const isSame = high === low;
  const table = {
    head: [words.charts.from, words.charts.to, words.charts.rollouts],
    rows: bins.map((bin) => [format(bin.low), format(bin.high), formatCount(bin.count)]),
  };
  return (
    <Chart label={label} table={table} note={words.charts.histogramNote(n, missing)}>
      <svg
        className={styles.svg}
        viewBox={`0 0 ${WIDTH} ${height}`}
        role="img"
        aria-label={`${label}. ${words.charts.histogramNote(n, missing)}`}
      >
        {bins.map((bin, index) => {
          const tall = ((height - BELOW - 14) * bin.count) / most;
          const step = WIDTH / bins.length;
          const left = isSame ? WIDTH / 2 - 20 : index * step;
          const wide = isSame ? 40 : Math.min(step - 1.5, 120);
          return (
            <g key={bin.low}>
              <rect
                className={styles.bar}
                x={left + (isSame ? 0 : (step - wide) / 2)}
                width={Math.max(1, wide)}
                y={height - BELOW - Math.max(bin.count > 0 ? 1.5 : 0, tall)}
                height={Math.max(bin.count > 0 ? 1.5 : 0, tall)}
                rx="2"
              >
                <title>{`${format(bin.low)} – ${format(bin.high)}: ${formatCount(bin.count)}`}</title>
              </rect>
              {bins.length <= 4 && bin.count > 0 && (
                <text
                  className={styles.text}
                  x={isSame ? WIDTH / 2 : left + step / 2}
                  y={height - BELOW - tall - 4}
                  textAnchor="middle"
                >
                  {formatCount(bin.count)}
                </text>
              )}
            </g>
          );
        })}
        <line className={styles.axis} x1="0" x2={WIDTH} y1={height - BELOW} y2={height - BELOW} />
        {mean != null && !isSame && (
          <line className={styles.marker} x1={across(mean)} x2={across(mean)} y1="2" y2={height - BELOW}>
            <title>{words.charts.mean(format(mean))}</title>
          </line>
        )}
        <text
          className={styles.text}
          x={isSame ? WIDTH / 2 : 0}
          y={height - 4}
          textAnchor={isSame ? "middle" : "start"}
        >
          {format(low)}
        </text>
        {!isSame && (
          <text className={styles.text} x={WIDTH} y={height - 4} textAnchor="end">
            {format(high)}
          </text>
        )}
      </svg>
    </Chart>
  );
}
