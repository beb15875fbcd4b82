/** The time, in seconds since 1970, for ages and durations that grow; all readers share one timer. */
import { useSyncExternalStore } from "react";

const TICK_MS = 1000;

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let now = Date.now() / 1000;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now() / 1000;
    for (const each of [...listeners]) each();
  }, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Changes only every `step` seconds, so that a list of ages is not painted each second. */
export function useNow(step = 5): number {
  return useSyncExternalStore(subscribe, () => Math.floor(now / step) * step);
}
