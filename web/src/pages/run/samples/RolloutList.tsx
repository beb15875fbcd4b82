/** The rollouts of a run, one per row: sorted and filtered by the server, opened by Enter, two of them compared. */
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { fetchRollouts, rolloutsKey } from "#/api/samples";
import type { RolloutEntry, RunInfo } from "#/api/types";
import { useKeys } from "#/app/keys";
import { LoadError } from "#/app/PageError";
import type { SearchChange } from "#/app/search";
import { Button } from "#/design/Button";
import { EmptyState } from "#/design/EmptyState";
import { Skeleton } from "#/design/Skeleton";
import { usePagedRows } from "#/parts/pagedRows";
import { VirtualTable } from "#/parts/VirtualTable";
import { words } from "#/words";
import { useOpenRollout } from "../RolloutLink";
import { metricColumn, metricOf } from "./columnIds";
import type { SampleColumn } from "./columns";
import styles from "./samples.module.css";
import { buildRolloutQuery, isFiltered, type RolloutSort, type SampleSearch } from "./search";

type Props = {
  run: RunInfo;
  search: SampleSearch;
  columns: readonly SampleColumn[];
  rows: Rollouts;
  onChange: (change: SearchChange<SampleSearch>) => void;
};

export function useRollouts(runId: string, search: SampleSearch, refetchInterval: number | false) {
  const query = buildRolloutQuery(search);
  return usePagedRows<RolloutEntry>({
    queryKey: rolloutsKey(runId, query),
    fetchPage: (offset, limit, signal) => fetchRollouts(runId, { ...query, offset, limit }, signal),
    refetchInterval,
  });
}

export type Rollouts = ReturnType<typeof useRollouts>;

export function RolloutList({ run, search, columns, rows, onChange }: Props) {
  const query = buildRolloutQuery(search);
  const open = useOpenRollout(run.id);
  const pair = usePair(run.id);
  if (rows.error && rows.count === 0) return <LoadError error={rows.error} onRetry={rows.refetch} />;
  if (rows.isLoading) return <Skeleton lines={8} />;
  const by = query.sort === "metric" ? metricColumn(query.metric ?? "") : (query.sort ?? "task");
  return (
    <>
      <VirtualTable
        label={words.run.tabs.samples}
        columns={columns}
        count={rows.count}
        rowAt={rows.rowAt}
        keyOf={(entry) => `${entry.key}/${entry.number}`}
        onOpen={(entry) => open(entry, withoutView(search))}
        sort={{ by, descending: query.descending ?? false }}
        onSort={({ by, descending }) => onChange(changeSort(search, by, descending))}
        selection={pair}
        onRange={rows.onRange}
        resetKey={JSON.stringify(query)}
        empty={<NoRollouts run={run} isFiltered={isFiltered(search)} />}
      />
      <PairBar pair={pair} />
    </>
  );
}

/** What of the address is about which rollouts these are. */
export function withoutView(search: SampleSearch): SampleSearch {
  const { view: _, cols: __, ...filters } = search;
  return filters;
}

export function changeSort(
  search: SampleSearch,
  by: string,
  descending: boolean,
): SearchChange<SampleSearch> {
  const metric = metricOf(by);
  if (metric === undefined)
    return {
      sort: by === "task" && !descending ? undefined : (by as RolloutSort),
      descending: descending || undefined,
    };
  const isOther = metric !== search.metric;
  return {
    sort: "metric",
    metric,
    descending: descending || undefined,
    ...(isOther ? { metric_min: undefined, metric_max: undefined } : {}),
  };
}

function NoRollouts({ run, isFiltered }: { run: RunInfo; isFiltered: boolean }) {
  const text = words.run.samples;
  if (isFiltered) return <EmptyState icon="filter" title={text.noneMatch} />;
  return <EmptyState title={run.ended_at === null ? text.noneYet : text.none} />;
}

/** The last two rollouts that were selected, for reading them side by side. */
function usePair(runId: string) {
  const [keys, setKeys] = useState<readonly string[]>([]);
  const navigate = useNavigate();
  return {
    keys,
    has: (key: string) => keys.includes(key),
    toggle: (key: string) =>
      setKeys((now) => (now.includes(key) ? now.filter((each) => each !== key) : [...now, key].slice(-2))),
    clear: () => setKeys([]),
    compare: () => {
      const [a, b] = keys.map((key) => `${runId}/${key}`);
      if (a && b) void navigate({ to: "/diff" as string, search: { a, b } as never });
    },
  };
}

function PairBar({ pair }: { pair: ReturnType<typeof usePair> }) {
  useKeys([
    { keys: "c", label: words.run.samples.diff, run: pair.compare },
    { keys: "Escape", label: words.table.clearSelection, run: pair.clear, hidden: true },
  ]);
  if (pair.keys.length === 0) return null;
  return (
    <div className={styles.pair}>
      <span>{words.run.samples.selected(pair.keys.length)}</span>
      <Button look="primary" icon="compare" disabled={pair.keys.length < 2} onClick={pair.compare}>
        {words.run.samples.diff}
      </Button>
      <Button look="quiet" onClick={pair.clear}>
        {words.table.clearSelection}
      </Button>
    </div>
  );
}
