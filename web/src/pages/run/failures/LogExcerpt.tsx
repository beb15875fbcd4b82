/** The lines of a run's log around one of them; loaded when it is opened. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { logQuery } from "#/api/log";
import { classes } from "#/design/classes";
import { Loaded } from "#/parts/Loaded";
import { words } from "#/words";
import { LogText, toneOfLevel } from "../logs/LogText";
import { listRows } from "../logs/logWindow";
import { nameLine } from "../logs/search";
import styles from "./failures.module.css";

const text = words.run.failures;
const LINES = 40;
/** An entry may be a very long traceback; the log itself has all of it. */
const MOST_ROWS = 200;

export function LogExcerpt({ runId, at, isOpen }: { runId: string; at: number; isOpen: boolean }) {
  const [open, setOpen] = useState(isOpen);
  const log = useQuery({ ...logQuery(runId, { around: at, limit: LINES }), enabled: open });
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className={styles.toggle}>{text.log}</summary>
      {open && (
        <Loaded query={log}>
          {({ items }) =>
            items.length === 0 ? (
              <p>{text.noLog}</p>
            ) : (
              // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
              <div className={styles.log} tabIndex={0} role="region" aria-label={text.log}>
                {listRows(items)
                  .slice(0, MOST_ROWS)
                  .map((row) => (
                    <div
                      key={`${row.entry.number}.${row.part}`}
                      className={classes(
                        styles.line,
                        styles[toneOfLevel(row.entry.level) ?? "neutral"],
                        row.entry.number === at && styles.here,
                      )}
                    >
                      <LogText row={row} />
                    </div>
                  ))}
              </div>
            )
          }
        </Loaded>
      )}
      <Link
        to="/runs/$runId/logs"
        params={{ runId }}
        hash={nameLine(at)}
        hashScrollIntoView={false}
        className={styles.openLog}
      >
        {text.openLog}
      </Link>
    </details>
  );
}
