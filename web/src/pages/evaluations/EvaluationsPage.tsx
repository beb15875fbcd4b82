/** The evaluations of one environment: its score by version and model, and the runs behind it. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { use, useEffect } from "react";
import { runFacetsQuery, runListQuery, runTotalQuery } from "#/api/runs";
import type { RunInfo } from "#/api/types";
import { usePolling } from "#/app/feed";
import { LoadError } from "#/app/PageError";
import { changeSearch, type SearchChange } from "#/app/search";
import { buttonClass } from "#/design/Button";
import { EmptyState } from "#/design/EmptyState";
import { Icon } from "#/design/Icon";
import { PageBody, PageHeader, Section } from "#/design/Section";
import { Segmented } from "#/design/Segmented";
import { Skeleton } from "#/design/Skeleton";
import { FilterBar } from "#/parts/FilterBar";
import { plural, words } from "#/words";
import { MOST_COMPARED } from "../compare/most";
import { EnvironmentContext, splitVersion } from "../environment/context";
import styles from "./EvaluationsPage.module.css";
import { keepNewest, listContenders } from "./history";
import { RunHistory } from "./RunHistory";
import type { EvaluationSearch } from "./route";
import { ScoreHistory } from "./ScoreHistory";

const text = words.evaluations;
const MOST_RUNS = 1000;

export function EvaluationsPage() {
  const params = useParams({ strict: false }) as { owner?: string; name: string };
  const { name } = splitVersion(params.name);
  const environment = params.owner ? `${params.owner}/${name}` : name;
  const isTab = use(EnvironmentContext) !== null;
  useEffect(() => {
    document.title = `${environment} · ${words.product}`;
  }, [environment]);
  const search = useSearch({ strict: false }) as EvaluationSearch;
  const navigate = useNavigate();
  const update = (change: SearchChange<EvaluationSearch>) =>
    void navigate({
      to: ".",
      search: (before: object) => changeSearch(before as EvaluationSearch, change),
      replace: true,
    });
  const history = useHistory(environment, search);
  if (history.error && !history.runs) return <LoadError error={history.error} onRetry={history.refetch} />;
  const runs = history.runs ?? [];
  return (
    <>
      <PageHeader
        title={isTab ? text.title : environment}
        isPart={isTab}
        below={
          <>
            {!isTab && <span>{text.title}</span>}
            <span>{plural(history.total, "run")}</span>
            <Link to="/runs" search={{ environment: [environment] }}>
              {words.home.all}
            </Link>
          </>
        }
        actions={<CompareNewest runs={runs} />}
      />
      <EvaluationFilters environment={environment} search={search} onChange={update} />
      <PageBody>
        {history.runs === undefined ? (
          <Skeleton lines={8} />
        ) : runs.length === 0 ? (
          <NoEvaluations environment={environment} isFiltered={Boolean(search.model || search.agent)} />
        ) : (
          <Results runs={runs} total={history.total} search={search} onChange={update} />
        )}
      </PageBody>
    </>
  );
}

type ChangeProps = { search: EvaluationSearch; onChange: (change: SearchChange<EvaluationSearch>) => void };

function Results({ runs, total, search, onChange }: { runs: RunInfo[]; total: number } & ChangeProps) {
  const scored = runs.filter((run) => run.score?.mean != null);
  const shown = search.show === "every" ? scored : keepNewest(runs);
  return (
    <>
      <Section
        title={text.chart}
        actions={
          <Segmented
            label={text.show}
            value={search.show ?? "newest"}
            options={[
              { value: "newest", label: text.newest },
              { value: "every", label: text.every },
            ]}
            onChange={(show) => onChange({ show: show === "every" ? "every" : undefined })}
          />
        }
      >
        <ScoreHistory runs={shown} contenders={listContenders(scored)} total={runs.length} />
      </Section>
      <Section
        title={text.table}
        note={total > runs.length ? text.last(runs.length, total) : undefined}
        flush
      >
        <div className={styles.table}>
          <RunHistory runs={runs} />
        </div>
      </Section>
    </>
  );
}

/** The newest run of each model, compared. */
function CompareNewest({ runs }: { runs: readonly RunInfo[] }) {
  const newest = new Map<string, RunInfo>();
  for (const run of keepNewest(runs)) {
    const known = newest.get(run.model);
    if (!known || known.created_at < run.created_at) newest.set(run.model, run);
  }
  const ids = [...newest.values()].sort((a, b) => b.created_at - a.created_at).map((run) => run.id);
  if (ids.length < 2) return null;
  return (
    <Link
      to="/compare"
      search={{ runs: ids.slice(0, MOST_COMPARED).join(",") }}
      className={buttonClass("plain")}
    >
      <Icon name="compare" />
      {text.compareNewest}
    </Link>
  );
}

function EvaluationFilters({ environment, search, onChange }: { environment: string } & ChangeProps) {
  const facets = useQuery(runFacetsQuery({ environment: [environment] }));
  const filters = (["model", "agent"] as const)
    .filter((name) => search[name] || (facets.data?.[name].length ?? 0) > 1)
    .map((name) => ({
      name,
      label: words.runs.columns[name],
      values: facets.data?.[name] ?? [],
      selected: search[name] ?? [],
      onChange: (selected: string[]) => onChange({ [name]: selected.length > 0 ? selected : undefined }),
    }));
  if (filters.length === 0) return null;
  return <FilterBar filters={filters} onClear={() => onChange({ model: undefined, agent: undefined })} />;
}

function NoEvaluations({ environment, isFiltered }: { environment: string; isFiltered: boolean }) {
  if (isFiltered) return <EmptyState icon="filter" title={text.noneMatch} />;
  return (
    <EmptyState title={text.none} commands={[`proctor eval run ${environment} -m MODEL`]}>
      <p>{text.noneHint}</p>
    </EmptyState>
  );
}

/** The newest runs, as many as one answer holds; asked for again when there are more. */
function useHistory(environment: string, search: EvaluationSearch) {
  const filters = {
    environment: [environment],
    ...(search.model ? { model: search.model } : {}),
    ...(search.agent ? { agent: search.agent } : {}),
  };
  const refetchInterval = usePolling();
  const list = useInfiniteQuery({ ...runListQuery({ ...filters, limit: MOST_RUNS }), refetchInterval });
  const total = useQuery({ ...runTotalQuery(filters), refetchInterval });
  const page = list.data?.pages[0];
  const isBehind = page !== undefined && total.data !== undefined && total.data !== page.total;
  const { refetch } = list;
  useEffect(() => {
    if (isBehind) void refetch();
  }, [isBehind, refetch]);
  return {
    runs: list.isPlaceholderData ? undefined : page?.items,
    total: page?.total ?? 0,
    error: list.error,
    refetch: () => void refetch(),
  };
}
