/**
 * What the feed says, written into the cache of answers: at once, and at most four times a second.
 * Rows that are shown change in place; rows that are not there yet are counted, never inserted.
 */
import type { InfiniteData, QueryClient, QueryKey } from "@tanstack/react-query";
import { COMPARE_KEY } from "./compare";
import { ENVIRONMENTS_KEY, environmentKey } from "./environmentKeys";
import { labelsKey } from "./labels";
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
  let flushedAt = 0;

  const flush = () => {
    timer = undefined;
    flushedAt = Date.now();
    const [changed, gone, all] = [changes, deleted, isStale];
    changes = new Map();
    deleted = new Set();
    isStale = false;
    if (all) return void client.invalidateQueries();
    const unknown = patchRuns(client, changed, gone);
    for (const id of changed.keys()) refresher.refresh(runKey(id));
    for (const id of gone) refresher.refresh([...runKey(id), "info"]); // its page says that it is gone
    refresher.refresh(["work"]);
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
      else if (event.kind === "labels" && event.run_id) return refresher.refresh(labelsKey(event.run_id));
      else if (event.kind === "resync") isStale = true;
      else if (event.kind === "change" && event.action)
        return keysOfChange(event.action).forEach(refresher.refresh);
      else if (event.environment) {
        refresher.refresh(environmentKey(event.environment));
        return refresher.refresh(ENVIRONMENTS_KEY);
      } else return refresher.refresh([event.kind]);
      timer ??= setTimeout(flush, Math.max(0, flushedAt + PAUSE_MS - Date.now()));
    },
    stop() {
      clearTimeout(timer);
      refresher.stop();
    },
  };
}

const NOUNS: Record<string, string> = { member: "team", variable: "secret", host: "work" };

/** What a change makes out of date: queries whose key begins with its noun, and the audit log. */
export function keysOfChange(action: string): QueryKey[] {
  const noun = action.split(".")[0] ?? "";
  const mayChangeRights = ["team", "member", "user"].includes(noun);
  return [[NOUNS[noun] ?? noun], ["audit"], ...(mayChangeRights ? [["session"]] : [])];
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

/** A run after a change; of what is older than what is known, nothing changes. */
export function applyChange(run: RunInfo, change: RunChange): RunInfo {
  const edited = change.revision < run.revision ? run : applyEdit(run, change);
  if (change.last_seq < edited.last_seq) return edited;
  return {
    ...edited,
    status: change.status,
    progress: change.progress,
    score: change.score ?? run.score,
    cost_usd: change.cost_usd ?? run.cost_usd,
    input_tokens: change.input_tokens,
    output_tokens: change.output_tokens,
    last_seq: change.last_seq,
    cause: change.cause, // none once it was resumed
    ended_at: change.ended_at,
  };
}

const applyEdit = (run: RunInfo, { name, tags, visibility, revision }: RunChange): RunInfo => ({
  ...run,
  name,
  tags,
  visibility,
  revision,
});

/** Writes the server's answer to a change wherever the run is shown, at once: the feed takes a moment. */
export function writeRun(client: QueryClient, run: RunInfo): void {
  client.setQueryData<RunInfo>([...runKey(run.id), "info"], (known) => {
    const isOlder = known && (run.last_seq < known.last_seq || run.revision < known.revision);
    return isOlder ? applyChange(known, run) : { ...run, summary: run.summary ?? known?.summary ?? null };
  });
  patchRuns(client, new Map([[run.id, run]]), new Set());
}

/** The same for a run that was deleted. */
export function dropRun(client: QueryClient, id: string): void {
  patchRuns(client, new Map(), new Set([id]));
  client.removeQueries({ queryKey: runKey(id), type: "inactive" });
}
