/** A search through all transcripts of a run: what was found so far, as the server finds it. */
import { useEffect, useState } from "react";
import { searchRun } from "#/api/rollouts";
import type { SearchHit } from "#/api/types";

export const MOST_HITS = 1_000;

type State = { hits: readonly SearchHit[]; isSearching: boolean; error: Error | null };

const NOTHING: State = { hits: [], isSearching: false, error: null };

export function useSearch(runId: string, q: string) {
  const [state, setState] = useState(NOTHING);
  const [attempt, setAttempt] = useState(0);
  const [stop, setStop] = useState(() => new AbortController());
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt is a reason to search again
  useEffect(() => {
    if (q === "") return setState(NOTHING);
    const cancel = new AbortController();
    setStop(cancel);
    setState({ ...NOTHING, isSearching: true });
    void collect(runId, q, cancel.signal, setState);
    return () => cancel.abort();
  }, [runId, q, attempt]);
  return {
    ...state,
    retry: () => setAttempt((before) => before + 1),
    stop: () => {
      stop.abort();
      setState((before) => ({ ...before, isSearching: false }));
    },
  };
}

async function collect(
  runId: string,
  q: string,
  signal: AbortSignal,
  setState: (change: (before: State) => State) => void,
): Promise<void> {
  try {
    for await (const found of searchRun(runId, { q, limit: String(MOST_HITS) }, signal))
      setState((before) => ({ ...before, hits: [...before.hits, ...found] }));
    setState((before) => ({ ...before, isSearching: false }));
  } catch (error) {
    if (signal.aborted) return;
    setState((before) => ({ ...before, isSearching: false, error: error as Error }));
  }
}
