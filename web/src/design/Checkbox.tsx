/** A native checkbox with its words, and optionally a count at the end of the line. */
import type { ReactNode } from "react";
import styles from "./Checkbox.module.css";

type Props = { checked: boolean; onChange: (checked: boolean) => void; children: ReactNode; count?: string };

export function Checkbox({ checked, onChange, children, count }: Props) {
  return (
    <label className={styles.line}>
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      <span className={styles.words}>{children}</span>
      {count && <span className={styles.count}>{count}</span>}
    </label>
  );
}
