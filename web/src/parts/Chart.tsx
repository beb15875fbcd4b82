/** The frame of every chart: its picture, its meaning in words, and the same numbers as a table. */
import { type ReactNode, useState } from "react";
import { Button } from "#/design/Button";
import { words } from "#/words";
import styles from "./Chart.module.css";

export type ChartTable = { head: readonly string[]; rows: readonly (readonly ReactNode[])[] };

type Props = { label: string; table: ChartTable; children: ReactNode; note?: ReactNode };

export function Chart({ label, table, children, note }: Props) {
  const [isTable, setTable] = useState(false);
  return (
    <figure className={styles.chart}>
      {isTable ? <NumberTable label={label} table={table} /> : children}
      <figcaption className={styles.caption}>
        <span>{note}</span>
        <Button look="quiet" small aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {isTable ? words.asChart : words.asTable}
        </Button>
      </figcaption>
    </figure>
  );
}

export function NumberTable({ label, table }: { label: string; table: ChartTable }) {
  return (
    <div className={styles.scroll}>
      <table className={styles.table} aria-label={label}>
        <thead>
          <tr>
            {table.head.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {row.map((value, column) => (
                <td key={column}>{value}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
