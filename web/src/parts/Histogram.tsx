/** How a quantity is distributed: one bar per bin, or per value where there are few; the mean as a dashed line. */
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
/** Around bars that stand for single values, so that the first and the last have room for their label. */
const INSET = 32;
const WIDEST = 48;

export function Histogram({ distribution, label, format = formatScore, height = 140 }: Props) {
  const { bins, mean, n, missing } = distribution;
  const most = Math.max(1, ...bins.map((bin) => bin.count));
  const low = bins[0]?.low ?? 0;
  const high = bins.at(-1)?.high ?? 1;
  const isSame = high === low;
  const areValues = bins.every((bin) => bin.low === bin.high);
  const inset = areValues ? INSET : 0;
  const across = (value: number) =>
    isSame ? WIDTH / 2 : inset + ((WIDTH - 2 * inset) * (value - low)) / (high - low);
  const gaps = bins.slice(1).map((bin, index) => across(bin.low) - across(bins[index]?.low ?? low));
  const wide = Math.max(2, Math.min(areValues ? WIDEST : 120, ...gaps) - 1.5);
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
        {bins.map((bin) => {
          const tall = ((height - BELOW - 14) * bin.count) / most;
          const middle = across((bin.low + bin.high) / 2);
          return (
            <g key={bin.low}>
              <rect
                className={styles.bar}
                x={middle - wide / 2}
                width={wide}
                y={height - BELOW - Math.max(bin.count > 0 ? 1.5 : 0, tall)}
                height={Math.max(bin.count > 0 ? 1.5 : 0, tall)}
                rx="2"
              >
                <title>{`${bin.low === bin.high ? format(bin.low) : `${format(bin.low)} – ${format(bin.high)}`}: ${formatCount(bin.count)}`}</title>
              </rect>
              {bins.length <= 4 && wide > 10 && bin.count > 0 && (
                <text className={styles.text} x={middle} y={height - BELOW - tall - 4} textAnchor="middle">
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
          x={across(low)}
          y={height - 4}
          textAnchor={areValues ? "middle" : "start"}
        >
          {format(low)}
        </text>
        {!isSame && (
          <text
            className={styles.text}
            x={across(high)}
            y={height - 4}
            textAnchor={areValues ? "middle" : "end"}
          >
            {format(high)}
          </text>
        )}
      </svg>
    </Chart>
  );
}
