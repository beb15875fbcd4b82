/** The tasks of all compared runs, those that flipped first, each one click from both traces. */
import { useNavigate } from "@tanstack/react-router";
import { comparedTasksKey, fetchCompared, TASKS_PER_PAGE } from "#/api/compare";
import type { ComparisonPage, TaskComparison } from "#/api/types";
import { EmptyState } from "#/design/EmptyState";
import { Section } from "#/design/Section";
import { Segmented } from "#/design/Segmented";
import { SearchField } from "#/parts/FilterBar";
import { usePagedRows } from "#/parts/pagedRows";
import { VirtualTable } from "#/parts/VirtualTable";
import { plural, words } from "#/words";
import styles from "./ComparedTasks.module.css";
import type { UpdateSearch } from "./ComparePage";
import { buildCompareQuery, type CompareSearch } from "./search";
import { buildTaskColumns, findDiff } from "./taskColumns";

const text = words.compare;
const ROW = 36;
const HEAD = 36;

type Props = {
  page: ComparisonPage;
  search: CompareSearch;
  nameOf: (id: string) => string;
  update: UpdateSearch;
};

export function ComparedTasks({ page, search, nameOf, update }: Props) {
  const navigate = useNavigate();
  const query = buildCompareQuery(search);
  const rows = usePagedRows({
    queryKey: comparedTasksKey(query),
    pageSize: TASKS_PER_PAGE,
    fetchPage: (offset, limit, signal) => fetchCompared(query, offset, limit, signal),
  });
  const open = (row: TaskComparison) => {
    const href = findDiff(row, page);
    if (href) void navigate({ href });
  };
  const only = search.only ?? "all";
  return (
    <Section
      title={text.tasks}
      note={plural(rows.count, "task")}
      flush
      actions={
        <div className={styles.filters}>
          <SearchField
            text={search.q ?? ""}
            placeholder={text.search}
            onChange={(q) => update({ q: q || undefined })}
          />
          <Segmented
            label={text.only.label}
            value={only}
            options={(["all", "differences", "flips"] as const).map((value) => ({
              value,
              label: text.only[value],
            }))}
            onChange={(value) => update({ only: value === "all" ? undefined : value })}
          />
        </div>
      }
    >
      <div
        className={styles.tasks}
        style={{ height: rows.count === 0 ? undefined : `min(70vh, ${rows.count * ROW + HEAD}px)` }}
      >
        <VirtualTable
          label={text.tasks}
          columns={buildTaskColumns(page, nameOf)}
          count={rows.count}
          rowAt={rows.rowAt}
          keyOf={(row) => `${row.member}/${row.task}`}
          onOpen={open}
          sort={{ by: search.sort ?? "difference", descending: search.sort !== "task" }}
          onSort={({ by }) => update({ sort: by === "task" ? "task" : undefined })}
          onRange={rows.onRange}
          resetKey={JSON.stringify(query)}
          empty={<EmptyState icon="list" title={only === "flips" ? text.noFlips : text.noTasks} />}
        />
      </div>
    </Section>
  );
}
