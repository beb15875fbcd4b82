/** What each day cost, as bars; where nothing has a price, how many requests each day had. */
import { Chart } from "#/parts/Chart";
import styles from "#/parts/Chart.module.css";
import { formatCount, formatMoney } from "#/parts/format";
import { plural } from "#/words";
import forms from "./forms.module.css";
import type { DayTotal } from "./usage";
import { text } from "./words";

const words = text.usage;
const WIDTH = 720;
const HEIGHT = 144;

export function UsageChart({ days }: { days: readonly DayTotal[] }) {
  const isPriced = days.some((day) => day.cost > 0);
  const sizeOf = (day: DayTotal) => (isPriced ? day.cost : day.requests);
  const most = Math.max(...days.map(sizeOf), isPriced ? 1e-9 : 1);
  const step = WIDTH / days.length;
  const cost = days.reduce((sum, day) => sum + day.cost, 0);
  const requests = days.reduce((sum, day) => sum + day.requests, 0);
  const note = words.describe(days.length, formatMoney(cost), requests);
  const table = {
    head: [words.day, words.requests, words.cost],
    rows: days.map((day) => [day.day, formatCount(day.requests), formatMoney(day.cost)]).reverse(),
  };
  return (
    <Chart label={words.used} table={table} note={note}>
      <div>
        <div className={forms.ends}>{isPriced ? formatMoney(most) : plural(most, "request")}</div>
        <svg
          className={forms.days}
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${words.used}. ${note}`}
        >
          <line className={styles.grid} x1="0" x2={WIDTH} y1="0" y2="0" />
          {days.map((day, index) => {
            const tall = (HEIGHT * sizeOf(day)) / most;
            const height = sizeOf(day) > 0 ? Math.max(1.5, tall) : 0;
            return (
              <rect
                key={day.day}
                className={styles.bar}
                x={index * step + step * 0.1}
                width={step * 0.8}
                y={HEIGHT - height}
                height={height}
              >
                <title>{words.perDay(day.day, formatMoney(day.cost), day.requests)}</title>
              </rect>
            );
          })}
          <line className={styles.axis} x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
        </svg>
        <div className={forms.ends}>
          <span>{days[0]?.day}</span>
          <span>{days.at(-1)?.day}</span>
        </div>
      </div>
    </Chart>
  );
}
