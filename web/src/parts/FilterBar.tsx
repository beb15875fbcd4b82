/** Filters above a list: a text and some choices, each of which lives in the address. */
import { type ReactNode, useEffect, useEffectEvent, useRef, useState } from "react";
import type { FacetValue } from "#/api/types";
import { useKeys } from "#/app/keys";
import { Button } from "#/design/Button";
import { Checkbox } from "#/design/Checkbox";
import { Icon } from "#/design/Icon";
import { Popover } from "#/design/Popover";
import { TextField } from "#/design/TextField";
import { words } from "#/words";
import styles from "./FilterBar.module.css";
import { formatCompact } from "./format";

export type Filter = {
  name: string;
  label: string;
  /** What it can be set to, with how many rows each has. */
  values: readonly FacetValue[];
  selected: readonly string[];
  onChange: (selected: string[]) => void;
  nameOf?: (value: string) => string;
};

type Props = {
  search?: { text: string; placeholder: string; onChange: (text: string) => void };
  filters?: readonly Filter[];
  /** Filters of another shape, after those. */
  more?: ReactNode;
  hasMore?: boolean;
  onClear?: () => void;
  /** More controls, at the end of the line. */
  children?: ReactNode;
};

export function FilterBar({ search, filters = [], more, hasMore = false, onClear, children }: Props) {
  const isFiltered = hasMore || filters.some((filter) => filter.selected.length > 0) || Boolean(search?.text);
  return (
    <div className={styles.bar}>
      {search && <SearchField {...search} />}
      {filters.map((filter) => (
        <FilterButton key={filter.name} filter={filter} />
      ))}
      {more}
      {isFiltered && onClear && (
        <Button look="quiet" onClick={onClear}>
          {words.filters.clear}
        </Button>
      )}
      <div className={styles.end}>{children}</div>
    </div>
  );
}

const TYPING_MS = 250;

/** Writes to the address when typing pauses; follows it when it changes otherwise. */
export function SearchField({ text, placeholder, onChange }: NonNullable<Props["search"]>) {
  const [typed, setTyped] = useState(text);
  const field = useRef<HTMLDivElement>(null);
  const [known, setKnown] = useState(text);
  if (known !== text) {
    setKnown(text);
    setTyped(text);
  }
  const submit = useEffectEvent((value: string) => value !== text && onChange(value));
  useEffect(() => {
    const timer = setTimeout(() => submit(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  useKeys([
    { keys: "/", label: words.keys.filter, run: () => field.current?.querySelector("input")?.focus() },
  ]);
  return (
    <div ref={field} className={styles.search}>
      <TextField
        label={placeholder}
        hideLabel
        icon="search"
        type="search"
        placeholder={placeholder}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") submit(typed);
          if (event.key !== "Escape") return;
          event.preventDefault(); // browsers empty a search field, and the filter with it
          event.currentTarget.blur();
        }}
      />
    </div>
  );
}

const MANY = 8;

function FilterButton({ filter }: { filter: Filter }) {
  const [wanted, setWanted] = useState("");
  const { label, selected, nameOf = (value: string) => value } = filter;
  const missing = selected.filter((value) => !filter.values.some((each) => each.value === value));
  const values = [...filter.values, ...missing.map((value) => ({ value, count: 0 }))];
  const shown = values.filter(({ value }) => nameOf(value).toLowerCase().includes(wanted.toLowerCase()));
  const toggle = (value: string, on: boolean) =>
    filter.onChange(on ? [...selected, value] : selected.filter((each) => each !== value));
  const trigger = (
    <Button look={selected.length > 0 ? "plain" : "quiet"} className={styles.filter ?? ""}>
      {label}
      {selected.length > 0 && <span className={styles.value}>{summarize(selected.map(nameOf))}</span>}
      <Icon name="chevronDown" size={12} />
    </Button>
  );
  return (
    <Popover trigger={trigger} label={label}>
      {values.length > MANY && (
        <TextField
          label={words.filters.find}
          hideLabel
          icon="search"
          placeholder={words.filters.find}
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
        />
      )}
      {shown.length === 0 && <p className={styles.nothing}>{words.filters.nothing}</p>}
      {shown.map(({ value, count }) => (
        <Checkbox
          key={value}
          checked={selected.includes(value)}
          onChange={(on) => toggle(value, on)}
          count={formatCompact(count)}
        >
          {nameOf(value)}
        </Checkbox>
      ))}
    </Popover>
  );
}

const summarize = (values: readonly string[]): string =>
  values.length > 2 ? `${values[0]} +${values.length - 1}` : values.join(", ");
