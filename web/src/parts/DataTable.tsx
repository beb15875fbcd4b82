/** A table of a few dozen lines with buttons in them; on a phone each line stands as a card. Long lists are
 * `VirtualTable`s. */
import type { ReactNode } from "react";
import styles from "./DataTable.module.css";

export type DataColumn<Row> = {
  title: string;
  cell: (row: Row) => ReactNode;
  isNumber?: boolean;
  /** Buttons, whose title is only spoken. */
  isActions?: boolean;
};

type Props<Row> = {
  label: string;
  columns: readonly DataColumn<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  empty: ReactNode;
};

export function DataTable<Row>({ label, columns, rows, keyOf, empty }: Props<Row>) {
  if (rows.length === 0) return <div className={styles.empty}>{empty}</div>;
  return (
    // biome-ignore lint/a11y/noRedundantRoles: as cards on a phone it would lose its meaning without them
    <table role="table" className={styles.table} aria-label={label}>
      <thead>
        {/* biome-ignore lint/a11y/noRedundantRoles: see above */}
        <tr role="row">
          {columns.map((column) => (
            // biome-ignore lint/a11y/noRedundantRoles: see above
            <th key={column.title} role="columnheader" scope="col" className={classOf(column)}>
              {column.isActions ? <span className={styles.spoken}>{column.title}</span> : column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          // biome-ignore lint/a11y/noRedundantRoles: see above
          <tr key={keyOf(row)} role="row">
            {columns.map((column) => (
              // biome-ignore lint/a11y/noRedundantRoles: see above
              <td key={column.title} role="cell" className={classOf(column)} data-title={column.title}>
                <div className={styles.content}>{column.cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const classOf = (column: { isNumber?: boolean; isActions?: boolean }) =>
  column.isActions ? styles.actions : column.isNumber ? styles.number : undefined;
