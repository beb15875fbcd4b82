/** The contents of a rollout's events, loaded window by window around those that are wanted. */
import { useQueries } from "@tanstack/react-query";
import { EVENTS_PER_WINDOW, eventWindowQuery, findWindow, type RolloutAddress } from "#/api/rollouts";
import type { EventContent } from "#/api/types";

export type LoadedEvents = {
  at: (index: number) => EventContent | undefined;
  error: Error | null;
  retry: () => void;
  isLoading: boolean;
};

/** Of the events with these indexes; each belongs to one window. */
export function useEvents(address: RolloutAddress, wanted: Iterable<number>): LoadedEvents {
  const windows = [...new Set(Array.from(wanted, findWindow))];
  const results = useQueries({ queries: windows.map((window) => eventWindowQuery(address, window)) });
  const byWindow = new Map(windows.map((window, at) => [window, results[at]?.data]));
  return {
    at: (index) => byWindow.get(findWindow(index))?.items[index % EVENTS_PER_WINDOW],
    error: results.find((result) => result.error)?.error ?? null,
    retry: () => {
      for (const result of results) if (result.error) void result.refetch();
    },
    isLoading: results.some((result) => result.isPending),
  };
}
