/** A window of a run's log that starts at its end or at a line, grows as it is scrolled, and while the run does. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { fetchLog, logQuery } from "#/api/log";
import type { LogPage } from "#/api/types";
import { addAfter, addBefore, type LogWindow, openWindow } from "./logWindow";
import type { LogFilter } from "./search";

const POLL_MS = 1_000;
const POLL_AFTER_ERROR_MS = 10_000;
const PAGE = 500;
const EMPTY: LogWindow = { entries: [], moreBefore: false, moreAfter: false, isComplete: true };

type Grown = { from: LogPage; window: LogWindow };
type End = "before" | "after";

export function useLogWindow(runId: string, filter: LogFilter, start: number | undefined) {
  const around = start === undefined ? {} : { around: start };
  const first = useQuery(logQuery(runId, { ...filter, ...around, limit: PAGE }));
  const [grown, setGrown] = useState<Grown>();
  const [hasFailed, setFailed] = useState(false);
  const busy = useRef<Record<End, LogPage | undefined>>({ before: undefined, after: undefined });
  const from = first.data;
  const window = !from ? EMPTY : grown?.from === from ? grown.window : openWindow(from);

  const grow = async (end: End) => {
    if (!from || busy.current[end] === from) return;
    busy.current[end] = from;
    try {
      const page = await fetchLog(runId, { ...filter, ...edgeOf(window, end), limit: PAGE });
      const add = end === "before" ? addBefore : addAfter;
      setGrown((now) => ({ from, window: add(now?.from === from ? now.window : openWindow(from), page) }));
      setFailed(false);
    } catch {
      setFailed(true);
    } finally {
      if (busy.current[end] === from) busy.current[end] = undefined;
    }
  };
  usePoll(from !== undefined && !window.isComplete && !window.moreAfter, hasFailed, () => void grow("after"));
  return {
    first: from,
    window,
    error: first.error,
    isLoading: first.isPending,
    hasFailed,
    grow,
    refetch: first.refetch,
  };
}

function edgeOf({ entries }: LogWindow, end: End): { before: number } | { after: number } {
  return end === "before" ? { before: entries[0]?.number ?? 1 } : { after: entries.at(-1)?.number ?? 0 };
}

/** A tab that nobody sees does not ask. */
function usePoll(isWanted: boolean, hasFailed: boolean, poll: () => void): void {
  const ask = useEffectEvent(() => !document.hidden && poll());
  useEffect(() => {
    if (!isWanted) return;
    const timer = setInterval(() => ask(), hasFailed ? POLL_AFTER_ERROR_MS : POLL_MS);
    return () => clearInterval(timer);
  }, [isWanted, hasFailed]);
}
