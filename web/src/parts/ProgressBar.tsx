/** How far a run is: a bar while it plays, a count when it has ended. */

import { isActive } from "#/api/runs";
import type { RunInfo } from "#/api/types";
import { words } from "#/words";
import { formatCompact } from "./format";
import styles from "./ProgressBar.module.css";

type Props = {
  progress: RunInfo["progress"];
  status: RunInfo["status"];
  /** Where no column says what is counted. */
  hasUnit?: boolean;
};

export function ProgressBar({ progress, status, hasUnit = false }: Props) {
  const { settled, planned, failed } = progress;
  const counts = `${formatCompact(settled)}${planned === null || planned === settled ? "" : ` / ${formatCompact(planned)}`}`;
  return (
    <span className={styles.progress} title={words.runs.progress(settled, planned, failed)}>
      {isActive(status) && planned !== null && planned > 0 && (
        <progress
          className={styles.bar}
          value={settled}
          max={planned}
          aria-label={words.runs.progress(settled, planned, failed)}
        />
      )}
      <span>
        {counts}
        {hasUnit && ` ${words.runs.unit(planned ?? settled)}`}
      </span>
    </span>
  );
}
