/** The tasks of a run, one per row: the mean and the spread of each one's rollouts, and a way to every one. */
import { fetchTasks, tasksKey } from "#/api/samples";
import type { RolloutEntry, RunInfo, TaskGroup } from "#/api/types";
import { LoadError } from "#/app/PageError";
import type { SearchChange } from "#/app/search";
import { classes } from "#/design/classes";
import { EmptyState } from "#/design/EmptyState";
import { Icon } from "#/design/Icon";
import { Skeleton } from "#/design/Skeleton";
import { formatCount, formatNumber, formatScore } from "#/parts/format";
import { nameOutcome } from "#/parts/Outcome";
import { usePagedRows } from "#/parts/pagedRows";
import type { Domain } from "#/parts/Score";
import { type Column, VirtualTable } from "#/parts/VirtualTable";
import { words } from "#/words";
import { RolloutLink } from "../RolloutLink";
import { SpreadPlot } from "./SpreadPlot";
import styles from "./samples.module.css";
import { buildTaskQuery, type SampleSearch, type TaskSort } from "./search";

const text = words.run.samples.tasks;
const MOST_CHIPS = 10;

export function useTasks(runId: string, search: SampleSearch, refetchInterval: number | false) {
  const query = buildTaskQuery(search);
  return usePagedRows<TaskGroup>({
    queryKey: tasksKey(runId, query),
    fetchPage: (offset, limit, signal) => fetchTasks(runId, { ...query, offset, limit }, signal),
    refetchInterval,
  });
}

type Props = {
  run: RunInfo;
  search: SampleSearch;
  threshold: number;
  domain: Domain;
  rows: ReturnType<typeof useTasks>;
  onChange: (change: SearchChange<SampleSearch>) => void;
};

export function TaskList({ run, search, threshold, domain, rows, onChange }: Props) {
  const query = buildTaskQuery(search);
  const openTask = (group: TaskGroup) =>
    onChange({ view: undefined, sort: undefined, descending: undefined, task: group.key });
  if (rows.error && rows.count === 0) return <LoadError error={rows.error} onRetry={rows.refetch} />;
  if (rows.isLoading) return <Skeleton lines={8} />;
  return (
    <VirtualTable
      label={text.label}
      columns={buildColumns(run.id, threshold, domain, openTask)}
      count={rows.count}
      rowAt={rows.rowAt}
      keyOf={(group) => group.key}
      onOpen={openTask}
      sort={{ by: query.sort ?? "task", descending: query.descending ?? false }}
      onSort={({ by, descending }) =>
        onChange({
          sort: by === "task" && !descending ? undefined : by,
          descending: descending || undefined,
        })
      }
      onRange={rows.onRange}
      resetKey={JSON.stringify(query)}
      empty={<EmptyState title={search.q || search.env ? text.noneMatch : text.none} />}
    />
  );
}

function buildColumns(
  runId: string,
  threshold: number,
  domain: Domain,
  open: (group: TaskGroup) => void,
): Column<TaskGroup, TaskSort>[] {
  const number = (id: TaskSort, title: string, cell: (group: TaskGroup) => string) =>
    ({ id, title, width: 5, sort: id, isNumber: true, cell }) as const;
  return [
    {
      id: "task",
      title: text.task,
      width: 6,
      grow: 1,
      sort: "task",
      cell: (group) => (
        <button type="button" className={styles.task} onClick={() => open(group)}>
          {String(group.task)}
        </button>
      ),
    },
    number("mean", text.mean, (group) => formatScore(group.mean)),
    number("spread", text.spread, (group) =>
      group.spread === null ? "–" : `± ${formatScore(group.spread)}`,
    ),
    {
      id: "plot",
      title: text.plot,
      width: 9,
      cell: (group) => <SpreadPlot group={group} domain={domain} />,
    },
    {
      id: "rollouts",
      title: text.rollouts,
      width: 14,
      grow: 3,
      cell: (group) => <Chips runId={runId} group={group} threshold={threshold} />,
    },
    {
      id: "passed",
      title: text.passed,
      width: 4.5,
      isNumber: true,
      cell: (group) => text.of(formatCount(group.passed), formatCount(group.scored)),
    },
    number("failed", text.failed, (group) => formatCount(group.failed)),
    number("lowest", text.lowest, (group) => formatScore(group.lowest)),
    number("highest", text.highest, (group) => formatScore(group.highest)),
  ];
}

/** Each rollout of a task as its reward, or as the sign that it failed; a link to it. */
function Chips({ runId, group, threshold }: { runId: string; group: TaskGroup; threshold: number }) {
  const rest = group.entries.length - MOST_CHIPS;
  return (
    <span className={styles.chips}>
      {group.entries.slice(0, MOST_CHIPS).map((entry) => (
        <RolloutLink
          key={entry.number}
          runId={runId}
          entry={entry}
          search={{ task: group.key }}
          label={describe(entry)}
          className={classes(styles.chip, toneOf(entry, threshold))}
        >
          {entry.reward === null ? <Icon name="alert" size={12} /> : formatNumber(entry.reward, 2)}
        </RolloutLink>
      ))}
      {rest > 0 && <span className={styles.none}>{text.more(rest)}</span>}
    </span>
  );
}

const describe = (entry: RolloutEntry): string =>
  text.describe(
    entry.number,
    nameOutcome(entry.outcome),
    entry.reward === null ? null : formatScore(entry.reward),
  );

const toneOf = (entry: RolloutEntry, threshold: number) =>
  entry.reward === null
    ? styles.chipFailed
    : entry.reward >= threshold
      ? styles.chipPassed
      : styles.chipMissed;
