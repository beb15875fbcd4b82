/** The filters of a run's rollouts, with what each can be set to; how they are shown; and their export. */
import { useQuery } from "@tanstack/react-query";
import { apiHref } from "#/api/client";
import { failuresQuery } from "#/api/samples";
import type { FacetValue, RunInfo, Summary } from "#/api/types";
import type { SearchChange } from "#/app/search";
import { Button } from "#/design/Button";
import { Menu, MenuDownload, MenuGroup } from "#/design/Menu";
import { Segmented } from "#/design/Segmented";
import { ColumnChooser } from "#/parts/ColumnChooser";
import { type Filter, FilterBar } from "#/parts/FilterBar";
import { nameOutcome } from "#/parts/Outcome";
import { words } from "#/words";
import { RangeFilter } from "./RangeFilter";
import { buildRolloutQuery, hasRange, NO_FILTERS, type SampleSearch } from "./search";

const text = words.run.samples;

type Props = {
  run: RunInfo;
  summary: Summary | undefined;
  search: SampleSearch;
  columns: readonly { id: string; title: string }[];
  shown: readonly string[];
  /** The id of the task that the list is narrowed down to. */
  taskName: string | undefined;
  onChange: (change: SearchChange<SampleSearch>) => void;
};

export function SampleFilters({ run, summary, search, columns, shown, taskName, onChange }: Props) {
  const failures = useQuery(failuresQuery(run.id));
  const kinds = countKinds((failures.data ?? []).map(({ kind, count }) => [kind, count]));
  const byTask = search.view === "tasks";
  const metrics = Object.keys(summary?.metrics ?? {});
  return (
    <FilterBar
      search={{
        text: search.q ?? "",
        placeholder: byTask ? text.searchTasks : text.search,
        onChange: (q) => onChange({ q: q || undefined }),
      }}
      filters={byTask ? [] : buildFilters(search, summary, kinds, taskName, onChange)}
      more={!byTask && <RangeFilter search={search} metrics={metrics} onChange={onChange} />}
      hasMore={!byTask && hasRange(search)}
      onClear={() => onChange(NO_FILTERS)}
    >
      <Segmented
        label={text.view}
        options={[
          { value: "rollouts", label: text.byRollout },
          { value: "tasks", label: text.byTask },
        ]}
        value={search.view ?? "rollouts"}
        onChange={(view) =>
          onChange({ view: view === "tasks" ? view : undefined, sort: undefined, descending: undefined })
        }
      />
      {!byTask && <ColumnChooser columns={columns} shown={shown} onChange={(cols) => onChange({ cols })} />}
      <ExportMenu run={run} search={search} />
    </FilterBar>
  );
}

function ExportMenu({ run, search }: { run: RunInfo; search: SampleSearch }) {
  const query = Object.entries(buildRolloutQuery(search)).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.map(String) : String(value),
  ]);
  const href = (format: string) =>
    apiHref(`/runs/${encodeURIComponent(run.id)}/export`, { ...Object.fromEntries(query), format });
  const trigger = (
    <Button look="quiet" icon="download">
      {text.export}
    </Button>
  );
  return (
    <Menu trigger={trigger}>
      <MenuGroup label={text.exportNote}>
        {Object.entries(text.formats).map(([format, name]) => (
          <MenuDownload key={format} href={href(format)}>
            {name}
          </MenuDownload>
        ))}
      </MenuGroup>
    </Menu>
  );
}

type Change = Props["onChange"];

function buildFilters(
  search: SampleSearch,
  summary: Summary | undefined,
  kinds: FacetValue[],
  taskName: string | undefined,
  onChange: Change,
): Filter[] {
  const list = (selected: string[]) => (selected.length > 0 ? selected : undefined);
  const filters: (Filter & { isUseful?: boolean })[] = [
    {
      name: "outcome",
      label: text.columns.outcome,
      values: listCounts(summary?.outcomes),
      selected: search.outcome ?? [],
      onChange: (selected) => onChange({ outcome: list(selected) as SampleSearch["outcome"] }),
      nameOf: nameOutcome,
    },
    {
      name: "passed",
      label: text.result,
      values: listCounts(
        summary && { true: summary.scores.passed, false: summary.scores.graded - summary.scores.passed },
      ),
      selected: search.passed ? [search.passed] : [],
      onChange: (selected) => onChange({ passed: selected.at(-1) as SampleSearch["passed"] }),
      nameOf: (value) => (value === "true" ? text.passed : text.notPassed),
    },
    {
      name: "error_kind",
      label: text.columns.error,
      values: kinds,
      selected: search.error_kind ?? [],
      onChange: (selected) => onChange({ error_kind: list(selected) }),
      isUseful: kinds.length > 0,
    },
    {
      name: "stop_condition",
      label: text.columns.stop,
      values: listCounts(summary?.stop_conditions).filter(({ value }) => value !== ""),
      selected: search.stop_condition ?? [],
      onChange: (selected) => onChange({ stop_condition: list(selected) }),
    },
    {
      name: "env",
      label: text.columns.env,
      values: Object.entries(summary?.members ?? {}).map(([value, { finished }]) => ({
        value,
        count: finished,
      })),
      selected: search.env ?? [],
      onChange: (selected) => onChange({ env: list(selected) }),
    },
    {
      name: "task",
      label: text.columns.task,
      values: [],
      selected: search.task ? [search.task] : [],
      onChange: () => onChange({ task: undefined }),
      nameOf: (value) => taskName ?? value,
      isUseful: false,
    },
  ];
  return filters.filter(
    ({ selected, values, isUseful }) => selected.length > 0 || (isUseful ?? values.length > 1),
  );
}

const listCounts = (counts: Readonly<Record<string, number>> | undefined): FacetValue[] =>
  Object.entries(counts ?? {})
    .filter(([, count]) => count > 0)
    .map(([value, count]) => ({ value, count }));

/** Failures of one kind may have several places; the filter asks for kinds. */
function countKinds(found: readonly (readonly [string, number])[]): FacetValue[] {
  const counts = new Map<string, number>();
  for (const [kind, count] of found) if (kind) counts.set(kind, (counts.get(kind) ?? 0) + count);
  return [...counts].map(([value, count]) => ({ value, count }));
}
