/** The part of a log that is in memory: it grows at both ends, and is cut at the far one before it gets too long. */
import type { LogEntry, LogPage } from "#/api/types";

export type LogWindow = {
  entries: readonly LogEntry[];
  moreBefore: boolean;
  moreAfter: boolean;
  isComplete: boolean;
};

export const MOST_LINES = 20_000;

export const openWindow = (page: LogPage): LogWindow => ({
  entries: page.items,
  moreBefore: page.more_before,
  moreAfter: page.more_after,
  isComplete: page.is_complete,
});

export function addBefore(window: LogWindow, page: LogPage, most = MOST_LINES): LogWindow {
  const first = window.entries[0]?.number ?? Number.POSITIVE_INFINITY;
  const entries = [...page.items.filter(({ number }) => number < first), ...window.entries];
  const isCut = entries.length > most;
  return {
    entries: isCut ? entries.slice(0, most) : entries,
    moreBefore: page.more_before,
    moreAfter: window.moreAfter || isCut,
    isComplete: window.isComplete,
  };
}

export function addAfter(window: LogWindow, page: LogPage, most = MOST_LINES): LogWindow {
  const last = window.entries.at(-1)?.number ?? Number.NEGATIVE_INFINITY;
  const added = page.items.filter(({ number }) => number > last);
  if (added.length === 0 && page.more_after === window.moreAfter && page.is_complete === window.isComplete)
    return window;
  const entries = [...window.entries, ...added];
  const isCut = entries.length > most;
  return {
    entries: isCut ? entries.slice(-most) : entries,
    moreBefore: window.moreBefore || isCut,
    moreAfter: page.more_after,
    isComplete: page.is_complete,
  };
}

export const hasLine = ({ entries }: LogWindow, number: number): boolean =>
  number >= (entries[0]?.number ?? Number.POSITIVE_INFINITY) && number <= (entries.at(-1)?.number ?? -1);

/** `part` counts the rows of one entry. */
export type LogRow = { entry: LogEntry; text: string; part: number };

/** An entry may have several lines, such as a traceback has. */
export const listRows = (entries: readonly LogEntry[]): LogRow[] =>
  entries.flatMap((entry) =>
    entry.text.split(/\r\n|\n/).map((text, part) => ({ entry, text: text.replace(/\r$/, ""), part })),
  );

/** The first row of the line with this number, or of the next one there is. */
export function findRow(rows: readonly LogRow[], number: number): number {
  const found = rows.findIndex(({ entry }) => entry.number >= number);
  return found < 0 ? rows.length - 1 : found;
}
