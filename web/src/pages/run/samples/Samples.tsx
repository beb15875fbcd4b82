/** Every rollout of a run: one by one, or by task. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { distributionQuery, isActive, runQuery, summaryQuery } from "#/api/runs";
import type { RunInfo, Summary } from "#/api/types";
import { usePolling } from "#/app/feed";
import { changeSearch, type SearchChange } from "#/app/search";
import { Loaded } from "#/parts/Loaded";
import type { Domain } from "#/parts/Score";
import { plural, words } from "#/words";
import { chooseColumns, listColumnIds } from "./columnIds";
import { buildColumns } from "./columns";
import { RolloutList, useRollouts, withoutView } from "./RolloutList";
import { SampleFilters } from "./SampleFilters";
import styles from "./samples.module.css";
import type { SampleSearch } from "./search";
import { TaskList, useTasks } from "./TaskList";

const route = getRouteApi("/runs/$runId/samples");
const REWARDS = { of: "reward", bins: 20 } as const;

type Change = (change: SearchChange<SampleSearch>) => void;
type Props = { run: RunInfo; summary: Summary | undefined; search: SampleSearch; onChange: Change };

export function Samples() {
  const { runId } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const onChange: Change = (change) =>
    void navigate({
      search: (before: SampleSearch) => changeSearch(before, change),
      replace: change.task === undefined, // a task is opened like a page, and Back leaves it
    });
  const run = useQuery(runQuery(runId));
  const summary = useQuery(summaryQuery(runId));
  const Part = search.view === "tasks" ? ByTask : ByRollout;
  return (
    <Loaded query={run} lines={8}>
      {(info) => <Part run={info} summary={summary.data} search={search} onChange={onChange} />}
    </Loaded>
  );
}

function ByRollout({ run, summary, search, onChange }: Props) {
  const rows = useRollouts(run.id, search, useInterval(run));
  const metrics = Object.keys(summary?.metrics ?? {});
  const context = {
    runId: run.id,
    threshold: summary?.pass_threshold ?? 1,
    filters: withoutView(search),
  };
  const columns = buildColumns(context, metrics);
  const usual = chooseColumns(metrics, {
    cost: (run.cost_usd ?? summary?.cost_usd ?? null) !== null,
    env: Object.keys(summary?.members ?? {}).length > 1,
  });
  const shown = search.cols ?? usual;
  const first = rows.rowAt(0);
  return (
    <div className={styles.samples}>
      <SampleFilters
        run={run}
        summary={summary}
        search={search}
        columns={listColumnIds(metrics).flatMap((id) => columns.filter((column) => column.id === id))}
        shown={shown}
        taskName={search.task === undefined || !first ? undefined : String(first.task)}
        onChange={onChange}
      />
      <Count text={plural(rows.count, "rollout")} isComplete={rows.isComplete} />
      <RolloutList
        run={run}
        search={search}
        columns={columns.filter(({ id }) => shown.includes(id))}
        rows={rows}
        onChange={onChange}
      />
    </div>
  );
}

function ByTask({ run, summary, search, onChange }: Props) {
  const rows = useTasks(run.id, search, useInterval(run));
  return (
    <div className={styles.samples}>
      <SampleFilters
        run={run}
        summary={summary}
        search={search}
        columns={[]}
        shown={[]}
        taskName={undefined}
        onChange={onChange}
      />
      <Count text={plural(rows.count, "task")} isComplete={rows.isComplete} />
      <TaskList
        run={run}
        search={search}
        threshold={summary?.pass_threshold ?? 1}
        domain={useDomain(run.id)}
        rows={rows}
        onChange={onChange}
      />
    </div>
  );
}

/** How often to ask again while nothing reports what has changed. */
function useInterval(run: RunInfo): number | false {
  const polling = usePolling();
  return isActive(run.status) && polling;
}

/** All rewards on one line: 0 to 1 unless some lie beyond. */
function useDomain(runId: string): Domain {
  const rewards = useQuery(distributionQuery(runId, REWARDS)).data;
  return [Math.min(0, rewards?.lowest ?? 0), Math.max(1, rewards?.highest ?? 1)];
}

function Count({ text, isComplete }: { text: string; isComplete: boolean }) {
  return (
    <p className={styles.count} aria-live="polite">
      {text}
      {!isComplete && ` · ${words.run.samples.stillReading}`}
    </p>
  );
}
