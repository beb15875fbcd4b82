/**
 * What the feed says, written into the cache of answers: at most four times a second, however much happens.
 * Rows that are shown change in place; rows that are not there yet are counted, never inserted.
 */
import type { InfiniteData, QueryClient, QueryKey } from "@tanstack/react-query";
import { COMPARE_KEY } from "./compare";
import { RUNS_KEY, runKey } from "./runs";
import { SUITES_KEY } from "./suites";
import type { FeedEvent, RunChange, RunInfo, RunPage, SuiteInfo } from "./types";

const PAUSE_MS = 250;
const REFRESH_MS = 1_000;

export type FeedCache = { add: (event: FeedEvent) => void; stop: () => void };

export function createFeedCache(client: QueryClient): FeedCache {
  const refresher = createRefresher(client);
  let changes = new Map<string, RunChange>();
  let deleted = new Set<string>();
  let isStale = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const flush = () => {
    timer = undefined;
    const [changed, gone, all] = [changes, deleted, isStale];
    changes = new Map();
    deleted = new Set();
    isStale = false;
    if (all) return void client.invalidateQueries();
    const unknown = patchRuns(client, changed, gone);
    for (const id of changed.keys()) refresher.refresh(runKey(id));
    if (isCompared(client, changed)) refresher.refresh(COMPARE_KEY);
    if (patchSuites(client, changed) || gone.size > 0) refresher.refresh(SUITES_KEY);
    if (!unknown && gone.size === 0) return;
    refresher.refresh([...RUNS_KEY, "total"]);
    refresher.refresh([...RUNS_KEY, "facets"]);
  };
  return {
    add(event) {
      if (event.kind === "run" && event.run) changes.set(event.run.id, event.run);
      else if (event.kind === "run_deleted" && event.run_id) deleted.add(event.run_id);
      else if (event.kind === "resync") isStale = true;
      else return refresher.refresh([event.kind]);
      timer ??= setTimeout(flush, PAUSE_MS);
    },
    stop() {
      clearTimeout(timer);
      refresher.stop();
    },
  };
}

/**
 * Asks again for what is shown below a key, at most once a second each. A query with `meta: { live: false }`
 * looks after itself, as a log does that only needs its new lines.
 */
function createRefresher(client: QueryClient) {
  const waiting = new Map<string, { isWanted: boolean; timer: ReturnType<typeof setTimeout> }>();
  const refresh = (queryKey: QueryKey): void => {
    const name = JSON.stringify(queryKey);
    const before = waiting.get(name);
    if (before) {
      before.isWanted = true;
      return;
    }
    void client.invalidateQueries({ queryKey, predicate: (query) => query.meta?.live !== false });
    const timer = setTimeout(() => {
      const isWanted = waiting.get(name)?.isWanted;
      waiting.delete(name);
      if (isWanted) refresh(queryKey);
    }, REFRESH_MS);
    waiting.set(name, { isWanted: false, timer });
  };
  const stop = () => {
    for (const { timer } of waiting.values()) clearTimeout(timer);
  };
  return { refresh, stop };
}

/** Writes the changes; true if a run is in none of the lists that are cached. */
export function patchRuns(client: QueryClient, changes: Map<string, RunChange>, gone: Set<string>): boolean {
  const unknown = new Set(changes.keys());
  const patch = (run: RunInfo): RunInfo => {
    const change = changes.get(run.id);
    unknown.delete(run.id);
    return change ? applyChange(run, change) : run;
  };
  client.setQueriesData<InfiniteData<RunPage>>(
    { queryKey: [...RUNS_KEY, "list"] },
    (data) => data && { ...data, pages: data.pages.map((page) => patchPage(page, patch, gone)) },
  );
  for (const [id, change] of changes)
    client.setQueryData<RunInfo>([...runKey(id), "info"], (run) => run && applyChange(run, change));
  return unknown.size > 0;
}

const isCompared = (client: QueryClient, changes: Map<string, RunChange>): boolean =>
  client
    .getQueryCache()
    .findAll({ queryKey: COMPARE_KEY, type: "active" })
    .some((query) => query.meta?.runs?.some((id) => changes.has(id)));

/** The same for sweeps: true if a run is in none of them. */
export function patchSuites(client: QueryClient, changes: Map<string, RunChange>): boolean {
  const unknown = new Set(changes.keys());
  const patch = (run: RunInfo): RunInfo => {
    const change = changes.get(run.id);
    unknown.delete(run.id);
    return change ? applyChange(run, change) : run;
  };
  client.setQueriesData<SuiteInfo[] | SuiteInfo>({ queryKey: SUITES_KEY }, (data) =>
    Array.isArray(data) ? data.map((suite) => patchSuite(suite, patch)) : data && patchSuite(data, patch),
  );
  return unknown.size > 0;
}

function patchSuite(suite: SuiteInfo, patch: (run: RunInfo) => RunInfo): SuiteInfo {
  const cells = suite.cells.map((cell) => {
    const run = patch(cell.run);
    return run === cell.run ? cell : { ...cell, run };
  });
  return cells.some((cell, index) => cell !== suite.cells[index]) ? { ...suite, cells } : suite;
}

function patchPage(page: RunPage, patch: (run: RunInfo) => RunInfo, gone: Set<string>): RunPage {
  const items = page.items.filter((run) => !gone.has(run.id)).map(patch);
  const isSame = items.length === page.items.length && items.every((run, index) => run === page.items[index]);
  return isSame ? page : { ...page, items, total: page.total - (page.items.length - items.length) };
}

/** A run after a change; an older change than what is known changes nothing. */
export function applyChange(run: RunInfo, change: RunChange): RunInfo {
  if (change.last_seq < run.last_seq) return run;
  return {
    ...run,
    status: change.status,
    progress: change.progress,
    score: change.score ?? run.score,
    cost_usd: change.cost_usd ?? run.cost_usd,
    input_tokens: change.input_tokens,
    output_tokens: change.output_tokens,
    last_seq: change.last_seq,
    cause: change.cause ?? run.cause,
    ended_at: change.ended_at ?? run.ended_at,
  };
}
