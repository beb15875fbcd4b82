/**
 * A table of any length: only the visible rows are in the page, the server sorts, keys move. Rows that are not
 * loaded yet have their place. One row is active (j, k, arrows); Enter opens it, x selects it.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, type RefObject, useEffect, useId, useRef, useState } from "react";
import { classes } from "#/design/classes";
import { words } from "#/words";
import { TableHead } from "./TableHead";
import { findStep, useTableKeys } from "./tableKeys";
import { useRange } from "./useRange";
import styles from "./VirtualTable.module.css";

export type Column<Row, Sort extends string = string> = {
  id: string;
  title: string;
  /** In rem; at least that much for a column that grows. */
  width: number;
  /** Its share of the room that is left. */
  grow?: number;
  cell: (row: Row) => ReactNode;
  sort?: Sort;
  /** Numbers stand at the end. */
  isNumber?: boolean;
};

export type SortState<Sort extends string> = { by: Sort; descending: boolean };

export type Selection = { has: (key: string) => boolean; toggle: (key: string) => void };

export type TableProps<Row, Sort extends string> = {
  label: string;
  columns: readonly Column<Row, Sort>[];
  /** Of all rows, loaded or not. */
  count: number;
  rowAt: (index: number) => Row | undefined;
  keyOf: (row: Row) => string;
  onOpen?: (row: Row) => void;
  sort?: SortState<Sort> | undefined;
  onSort?: (sort: SortState<Sort>) => void;
  selection?: Selection | undefined;
  /** Called with the visible rows, to load them. */
  onRange?: (first: number, last: number) => void;
  isHighlighted?: (row: Row) => boolean;
  /** Shown instead of rows where there are none. */
  empty?: ReactNode;
  /** Changes when the rows are others, as after a new filter: the table then starts at its top again. */
  resetKey?: string;
};

const ROW_HEIGHT = 36;

export function VirtualTable<Row, Sort extends string = string>(props: TableProps<Row, Sort>) {
  const { label, columns, count, rowAt, keyOf, selection, onOpen } = props;
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(-1);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
  });
  const visible = rows.getVirtualItems();
  const move = (to: number) => {
    const next = Math.min(count - 1, Math.max(0, to));
    setActive(next);
    rows.scrollToIndex(next, { align: "auto" });
  };
  const activeRow = active >= 0 && active < count ? rowAt(active) : undefined;
  const open = () => activeRow && onOpen?.(activeRow);
  const select = () => activeRow && selection?.toggle(keyOf(activeRow));
  useTableKeys({ move: (step) => move(active + step), open, select: selection ? select : undefined });
  useReset(props.resetKey, box, () => setActive(-1));
  useRange(visible[0]?.index ?? 0, visible.at(-1)?.index ?? 0, props.onRange);
  const cells = columns.length + (selection ? 1 : 0);
  const { grid, minWidth } = layOut(columns, selection !== undefined);
  if (count === 0 && props.empty) return <div className={styles.nothing}>{props.empty}</div>;
  return (
    <div
      ref={box}
      className={styles.box}
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-colcount={cells}
      aria-activedescendant={activeRow ? `${id}-${active}` : undefined}
      tabIndex={0}
      onKeyDown={(event) => {
        const step = findStep(
          event.key,
          Math.floor((box.current?.clientHeight ?? 0) / ROW_HEIGHT) - 2,
          count,
        );
        if (step === null || event.target !== box.current) return;
        event.preventDefault();
        move(active + step);
      }}
    >
      <div style={{ minWidth }}>
        <TableHead {...props} grid={grid} />
        <div className={styles.space} style={{ height: rows.getTotalSize() }} role="rowgroup">
          {visible.map(({ index, start }, place) => {
            const row = rowAt(index);
            const shared = {
              id: `${id}-${index}`,
              index,
              top: start,
              isActive: index === active,
              onActivate: () => setActive(index),
            };
            return row === undefined ? (
              <WaitingRow key={`waiting ${place}`} {...shared} cells={cells} />
            ) : (
              <TableRow key={index} {...props} {...shared} row={row} grid={grid} />
            );
          })}
        </div>
      </div>
    </div>
  );
}

const CHECK_WIDTH = 1.25;
const GAP = 1;
const PADDING = 3;

/** The tracks of every row, and how wide all of them must be: below that the table scrolls sideways. */
function layOut(columns: readonly { width: number; grow?: number }[], hasCheck: boolean) {
  const all = hasCheck ? [{ width: CHECK_WIDTH }, ...columns] : columns;
  const tracks = all.map(({ width, grow }: { width: number; grow?: number }) =>
    grow ? `minmax(${width}rem, ${grow}fr)` : `${width}rem`,
  );
  const widths = all.reduce((sum, { width }) => sum + width, 0);
  return {
    grid: { gridTemplateColumns: tracks.join(" ") },
    minWidth: `${widths + GAP * (all.length - 1) + PADDING}rem`,
  };
}

type PlacedProps = { id: string; index: number; top: number; isActive: boolean; onActivate: () => void };

/** A row that is not loaded yet: next to nothing, because fast scrolling passes thousands of them. */
function WaitingRow({ id, index, top, isActive, onActivate, cells }: PlacedProps & { cells: number }) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keyboard
    <div
      id={id}
      role="row"
      aria-rowindex={index + 2}
      className={classes(styles.row, isActive && styles.active)}
      style={{ transform: `translateY(${top}px)` }}
      onClick={onActivate}
    >
      <div role="gridcell" aria-colspan={cells} className={styles.waiting} />
    </div>
  );
}

type RowProps<Row, Sort extends string> = TableProps<Row, Sort> &
  PlacedProps & { row: Row; grid: { gridTemplateColumns: string } };

function TableRow<Row, Sort extends string>(props: RowProps<Row, Sort>) {
  const { row, columns, keyOf, selection, onOpen, isActive, onActivate } = props;
  const isSelected = selection?.has(keyOf(row)) ?? false;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keyboard
    <div
      id={props.id}
      role="row"
      aria-rowindex={props.index + 2}
      aria-selected={selection ? isSelected : undefined}
      className={classes(
        styles.row,
        isActive && styles.active,
        isSelected && styles.selected,
        props.isHighlighted?.(row) && styles.highlighted,
        onOpen && styles.opens,
      )}
      style={{ transform: `translateY(${props.top}px)`, ...props.grid }}
      onClick={(event) => {
        onActivate();
        if (isPlainClick(event)) onOpen?.(row);
      }}
    >
      {selection && (
        <div role="gridcell" className={styles.check}>
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={words.table.selectRow}
            checked={isSelected}
            onChange={() => selection.toggle(keyOf(row))}
          />
        </div>
      )}
      {columns.map((column) => (
        <div
          key={column.id}
          role="gridcell"
          className={classes(styles.cell, column.isNumber && styles.number)}
        >
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}

/** Not on a control, not with a key that opens a new tab, and not the end of selecting text. */
function isPlainClick(event: React.MouseEvent): boolean {
  const isControl = (event.target as Element).closest("a, button, input, label") !== null;
  const isSelecting = (getSelection()?.toString() ?? "") !== "";
  return (
    !isControl && !isSelecting && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0
  );
}

function useReset(key: string | undefined, box: RefObject<HTMLDivElement | null>, reset: () => void): void {
  const before = useRef(key);
  useEffect(() => {
    if (before.current === key) return;
    before.current = key;
    reset();
    box.current?.scrollTo({ top: 0 });
  });
}
