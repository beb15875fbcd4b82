/** Limits for reward, time, tokens and one metric, each of which lives in the address. */
import { useState } from "react";
import type { SearchChange } from "#/app/search";
import { Button } from "#/design/Button";
import { Icon } from "#/design/Icon";
import { Popover } from "#/design/Popover";
import { formatNumber } from "#/parts/format";
import { words } from "#/words";
import styles from "./RangeFilter.module.css";
import { hasRange, RANGES, type SampleSearch } from "./search";

type Props = {
  search: SampleSearch;
  metrics: readonly string[];
  onChange: (change: SearchChange<SampleSearch>) => void;
};

const text = words.run.samples.ranges;

export function RangeFilter({ search, metrics, onChange }: Props) {
  const shown = RANGES.filter((name) => name !== "metric" || metrics.length > 0);
  const metric = search.metric ?? metrics[0];
  const trigger = (
    <Button look={hasRange(search) ? "plain" : "quiet"} className={styles.trigger ?? ""}>
      {text.title}
      {hasRange(search) && <span className={styles.value}>{describeRanges(search)}</span>}
      <Icon name="chevronDown" size={12} />
    </Button>
  );
  return (
    <Popover trigger={trigger} label={text.title}>
      <div className={styles.ranges}>
        {shown.map((name) => (
          <fieldset key={name} className={styles.range}>
            <legend className={styles.legend}>{text[name]}</legend>
            {name === "metric" && (
              <select
                className={styles.metric}
                aria-label={text.metric}
                value={metric}
                onChange={(event) => onChange({ metric: event.target.value })}
              >
                {metrics.map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            )}
            {(["min", "max"] as const).map((end) => (
              <Limit
                key={end}
                label={end === "min" ? text.from(text[name]) : text.to(text[name])}
                value={search[`${name}_${end}`]}
                onChange={(value) =>
                  onChange({ [`${name}_${end}`]: value, ...(name === "metric" ? { metric } : {}) })
                }
              />
            ))}
          </fieldset>
        ))}
      </div>
    </Popover>
  );
}

type LimitProps = { label: string; value: number | undefined; onChange: (value: number | undefined) => void };

/** Written to the address when the field is left, or by Enter. */
function Limit({ label, value, onChange }: LimitProps) {
  const [typed, setTyped] = useState(value === undefined ? "" : String(value));
  const [known, setKnown] = useState(value);
  if (known !== value) {
    setKnown(value);
    setTyped(value === undefined ? "" : String(value));
  }
  const submit = () => {
    const number = typed.trim() === "" ? undefined : Number(typed);
    if (number === undefined || Number.isFinite(number)) onChange(number);
  };
  return (
    <input
      className={styles.limit}
      type="number"
      step="any"
      aria-label={label}
      placeholder="–"
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={submit}
      onKeyDown={(event) => event.key === "Enter" && submit()}
    />
  );
}

function describeRanges(search: SampleSearch): string {
  const limits = RANGES.flatMap((name) => {
    const [low, high] = [search[`${name}_min`], search[`${name}_max`]];
    if (low === undefined && high === undefined) return [];
    const title = name === "metric" ? (search.metric ?? text.metric) : text[name];
    return [text.describe(title, formatLimit(low), formatLimit(high))];
  });
  return limits.join(", ");
}

const formatLimit = (value: number | undefined) => (value === undefined ? null : formatNumber(value));
