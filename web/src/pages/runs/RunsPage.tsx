/** The list of runs: live, filtered by its address, walked by keys, compared by selection. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { runFacetsQuery, runListQuery, runTotalQuery } from "#/api/runs";
import { sessionQuery } from "#/api/session";
import type { RunInfo } from "#/api/types";
import { usePolling } from "#/app/feed";
import { LoadError } from "#/app/PageError";
import { changeSearch, type SearchChange } from "#/app/search";
import { Button, buttonClass } from "#/design/Button";
import { FullPage, PageHeader } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { PageLink } from "#/parts/PageLink";
import { findDomains } from "#/parts/Score";
import { VirtualTable } from "#/parts/VirtualTable";
import { plural, words } from "#/words";
import { NEW_RUN, wizardAddress } from "../wizard/link";
import { chooseColumns } from "./columnIds";
import { buildColumns } from "./columns";
import { NoRuns } from "./NoRuns";
import { RunFilters } from "./RunFilters";
import { SelectionBar, useSelection } from "./SelectionBar";
import { buildListQuery, isFiltered, type RunSearch } from "./search";

const route = getRouteApi("/runs");
const NEAR_END = 40;

export function RunsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const update = (change: SearchChange<RunSearch>) =>
    void navigate({ search: (before: RunSearch) => changeSearch(before, change), replace: true });
  const list = useRunList(search);
  const facets = useQuery(
    runFacetsQuery(buildListQuery(changeSearch(search, { sort: undefined, ascending: undefined }))),
  );
  const selection = useSelection();
  const session = useQuery(sessionQuery);
  const shown: readonly string[] = search.cols ?? chooseColumns(list.rows);
  const columns = buildColumns(findDomains(list.rows.filter((run) => run !== undefined))).filter(({ id }) =>
    shown.includes(id),
  );
  if (list.error && list.rows.length === 0) return <LoadError error={list.error} onRetry={list.refetch} />;
  return (
    <FullPage>
      <PageHeader
        title={words.runs.title}
        below={<span>{plural(list.total, "run")}</span>}
        actions={
          <>
            {list.news > 0 && (
              <Button look="primary" small icon="arrowUp" onClick={list.refetch}>
                {words.table.newRows(list.news)}
              </Button>
            )}
            {session.data?.user && (
              <PageLink href={wizardAddress({})} className={buttonClass("plain")}>
                {NEW_RUN}
              </PageLink>
            )}
          </>
        }
      />
      <RunFilters search={search} facets={facets.data} shown={shown} onChange={update} />
      {list.isLoading ? (
        <Skeleton lines={8} />
      ) : (
        <VirtualTable
          label={words.runs.title}
          columns={columns}
          count={list.count}
          rowAt={(index) => list.rows[index]}
          keyOf={(run: RunInfo) => run.id}
          onOpen={(run) => void navigate({ to: "/runs/$runId", params: { runId: run.id } })}
          sort={{ by: search.sort ?? "created", descending: !search.ascending }}
          onSort={({ by, descending }) =>
            update({ sort: by === "created" ? undefined : by, ascending: descending ? undefined : true })
          }
          selection={selection}
          onRange={list.onRange}
          isHighlighted={(run) => run.id === search.new}
          resetKey={JSON.stringify(buildListQuery(search))}
          empty={<NoRuns isFiltered={isFiltered(search)} />}
        />
      )}
      <SelectionBar selection={selection} runs={list.rows.filter((run) => selection.has(run.id))} />
    </FullPage>
  );
}

function useRunList(search: RunSearch) {
  const query = buildListQuery(search);
  const refetchInterval = usePolling();
  const list = useInfiniteQuery({ ...runListQuery(query), refetchInterval });
  const total = useQuery({ ...runTotalQuery(query), refetchInterval });
  const pages = list.data?.pages ?? [];
  const rows = pages.flatMap((page) => page.items);
  const listed = pages[0]?.total ?? 0;
  return {
    rows,
    count: rows.length + (list.hasNextPage ? 1 : 0),
    total: listed,
    news: list.isPlaceholderData ? 0 : Math.max(0, (total.data ?? listed) - listed),
    error: list.error,
    isLoading: list.isPending,
    refetch: () => void Promise.all([list.refetch(), total.refetch()]),
    onRange: (_: number, last: number) => {
      if (list.hasNextPage && !list.isFetchingNextPage && last > rows.length - NEAR_END)
        void list.fetchNextPage();
    },
  };
}
