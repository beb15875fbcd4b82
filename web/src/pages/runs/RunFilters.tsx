/** The filters of the list of runs, with what each can be set to, and its columns. */
import type { RunFacets } from "#/api/types";
import type { SearchChange } from "#/app/search";
import { ColumnChooser } from "#/parts/ColumnChooser";
import { type Filter, FilterBar } from "#/parts/FilterBar";
import { words } from "#/words";
import { COLUMN_IDS, type ColumnId } from "./columnIds";
import { FILTER_NAMES, type RunSearch } from "./search";

type Props = {
  search: RunSearch;
  facets: RunFacets | undefined;
  /** The columns that are shown. */
  shown: readonly string[];
  onChange: (change: SearchChange<RunSearch>) => void;
};

const NAMES: Partial<Record<(typeof FILTER_NAMES)[number], (value: string) => string>> = {
  status: (value) => words.status[value as keyof typeof words.status] ?? value,
  kind: (value) => words.kind[value as keyof typeof words.kind] ?? value,
};

export function RunFilters({ search, facets, shown, onChange }: Props) {
  const filters: Filter[] = FILTER_NAMES.filter(
    (name) => search[name] || (facets?.[name].length ?? 0) > 1,
  ).map((name) => ({
    name,
    label: words.runs.filters[name],
    values: facets?.[name] ?? [],
    selected: search[name] ?? [],
    onChange: (selected) => onChange({ [name]: selected.length > 0 ? selected : undefined }),
    ...(NAMES[name] ? { nameOf: NAMES[name] } : {}),
  }));
  const clear = () =>
    onChange(Object.fromEntries([...FILTER_NAMES, "q", "since", "suite"].map((name) => [name, undefined])));
  return (
    <FilterBar
      search={{
        text: search.q ?? "",
        placeholder: words.runs.search,
        onChange: (q) => onChange({ q: q || undefined }),
      }}
      filters={filters}
      onClear={clear}
    >
      <ColumnChooser
        columns={COLUMN_IDS.map((id) => ({ id, title: words.runs.columns[id] }))}
        shown={shown}
        onChange={(cols) => onChange({ cols: cols as ColumnId[] | undefined })}
      />
    </FilterBar>
  );
}
