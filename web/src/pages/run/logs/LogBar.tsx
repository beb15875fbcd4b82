/** Above the log: its search, the levels that are shown, and whether long lines are wrapped. */
import type { ReactNode } from "react";
import type { SearchChange } from "#/app/search";
import { Checkbox } from "#/design/Checkbox";
import { Segmented } from "#/design/Segmented";
import { FilterBar } from "#/parts/FilterBar";
import { words } from "#/words";
import { LEVELS, type LogSearch } from "./search";

const text = words.run.logs;

type Props = {
  search: LogSearch;
  wrap: boolean;
  onWrap: (wrap: boolean) => void;
  onChange: (change: SearchChange<LogSearch>) => void;
  state: ReactNode;
};

export function LogBar({ search, wrap, onWrap, onChange, state }: Props) {
  return (
    <FilterBar
      search={{
        text: search.q ?? "",
        placeholder: text.search,
        onChange: (q) => onChange({ q: q || undefined }),
      }}
      more={
        <Segmented
          label={text.level}
          options={(["all", ...LEVELS] as const).map((value) => ({ value, label: text.levels[value] }))}
          value={search.level ?? "all"}
          onChange={(level) => onChange({ level: level === "all" ? undefined : level })}
        />
      }
    >
      <Checkbox checked={wrap} onChange={onWrap}>
        {text.wrap}
      </Checkbox>
      {state}
    </FilterBar>
  );
}
