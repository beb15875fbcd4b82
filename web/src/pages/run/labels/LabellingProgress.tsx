/** How far a person is. */
import styles from "./labels.module.css";
import { labelWords } from "./words";

export const LabellingProgress = ({ done, all }: { done: number; all: number }) => (
  <progress
    className={styles.track}
    value={done}
    max={all}
    aria-label={labelWords.label.progress(done, all)}
  />
);
