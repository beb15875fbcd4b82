/** One line of a log: its time, its level, and its text in the colours of a terminal. */
import type { Tone } from "#/design/Badge";
import { classes } from "#/design/classes";
import { Ansi } from "#/parts/Ansi";
import { stripAnsi } from "#/parts/ansiText";
import { formatClock } from "#/parts/format";
import { Marked } from "#/parts/LineView";
import styles from "./logs.module.css";
import type { LogRow } from "./logWindow";

const TONES: Record<string, Tone> = { ERROR: "bad", CRITICAL: "bad", WARNING: "warn" };

export const toneOfLevel = (level: string): Tone | undefined => TONES[level];

/** What was searched for is marked, and then the colours of the terminal stand back. */
export function LogText({ row, search = "" }: { row: LogRow; search?: string }) {
  const { at, level } = row.entry;
  const isHead = row.part === 0 && at !== null;
  return (
    <>
      <span className={styles.time}>{isHead ? formatClock(at) : ""}</span>
      <span className={classes(styles.level, styles[TONES[level] ?? "neutral"])}>{isHead ? level : ""}</span>
      {search ? <Marked text={stripAnsi(row.text)} search={search} /> : <Ansi text={row.text} />}
    </>
  );
}
