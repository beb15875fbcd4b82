/** Grey lines where content will be; shown only after a moment, so that fast answers do not flicker. */
import { words } from "#/words";
import styles from "./Skeleton.module.css";

export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div className={styles.block} role="status" aria-label={words.loading}>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} className={styles.line} />
      ))}
    </div>
  );
}
