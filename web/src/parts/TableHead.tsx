/** The header row of a virtual table: names of columns, and how they are sorted. */
import { classes } from "#/design/classes";
import { Hidden } from "#/design/Hidden";
import { Icon } from "#/design/Icon";
import { words } from "#/words";
import type { Column, SortState, TableProps } from "./VirtualTable";
import styles from "./VirtualTable.module.css";

type Props<Row, Sort extends string> = Pick<
  TableProps<Row, Sort>,
  "columns" | "sort" | "onSort" | "selection"
> & {
  grid: { gridTemplateColumns: string };
};

export function TableHead<Row, Sort extends string>({
  columns,
  sort,
  onSort,
  selection,
  grid,
}: Props<Row, Sort>) {
  return (
    <div className={styles.head} role="rowgroup">
      <div className={styles.headRow} role="row" aria-rowindex={1} style={grid}>
        {selection && (
          <div role="columnheader">
            <Hidden>{words.table.selectRow}</Hidden>
          </div>
        )}
        {columns.map((column) => {
          const isSorted = column.sort !== undefined && sort?.by === column.sort;
          return (
            <div
              key={column.id}
              role="columnheader"
              aria-sort={isSorted ? (sort.descending ? "descending" : "ascending") : undefined}
              className={classes(styles.headCell, column.isNumber && styles.number)}
            >
              <HeadContent column={column} isSorted={isSorted} sort={sort} onSort={onSort} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

type ContentProps<Row, Sort extends string> = {
  column: Column<Row, Sort>;
  isSorted: boolean;
  sort: SortState<Sort> | undefined;
  onSort: ((sort: SortState<Sort>) => void) | undefined;
};

function HeadContent<Row, Sort extends string>({ column, isSorted, sort, onSort }: ContentProps<Row, Sort>) {
  const by = column.sort;
  if (by === undefined || !onSort) return column.title;
  const descending = isSorted ? !sort?.descending : (column.isNumber ?? false);
  return (
    <button
      type="button"
      className={classes(styles.sort, isSorted && styles.sorted)}
      title={words.table.sortBy(column.title)}
      onClick={() => onSort({ by, descending })}
    >
      {column.title}
      {isSorted && <Icon name={sort?.descending ? "arrowDown" : "arrowUp"} size={12} />}
    </button>
  );
}
