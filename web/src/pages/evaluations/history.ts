/** Runs of one environment by version and model, in the order they came. Knows nothing of React. */
import type { RunInfo } from "#/api/types";
import { words } from "#/words";

export type HistoryGroup = { version: string; label: string; runs: RunInfo[] };

const HASH_LENGTH = 8;

/** A version, or where there is none, the content that ran. */
export const versionOf = (run: RunInfo): string => run.version ?? run.content_hash ?? "";

export function nameVersion(run: RunInfo): string {
  if (run.version) return run.version;
  const hash = run.content_hash?.replace(/^\w+:/, "").slice(0, HASH_LENGTH);
  return hash ? words.evaluations.content(hash) : words.evaluations.noVersion;
}

/** What was evaluated: the model, with the agent if one worked on the tasks. */
export const nameContender = (run: RunInfo): string =>
  run.agent ? `${run.model} · ${run.agent}` : run.model;

/** The scored runs by version; versions in the order of their first run, runs in the order of models. */
export function groupByVersion(runs: readonly RunInfo[], contenders: readonly string[]): HistoryGroup[] {
  const groups = new Map<string, HistoryGroup>();
  for (const run of [...runs].sort((a, b) => a.created_at - b.created_at)) {
    if (run.score?.mean == null) continue;
    const version = versionOf(run);
    const group = groups.get(version) ?? { version, label: nameVersion(run), runs: [] };
    group.runs.push(run);
    groups.set(version, group);
  }
  const place = (run: RunInfo) => contenders.indexOf(nameContender(run));
  for (const group of groups.values())
    group.runs.sort((a, b) => place(a) - place(b) || a.created_at - b.created_at);
  return [...groups.values()];
}

/** Of each version and contender, the newest run with a score. */
export function keepNewest(runs: readonly RunInfo[]): RunInfo[] {
  const newest = new Map<string, RunInfo>();
  for (const run of runs) {
    if (run.score?.mean == null) continue;
    const key = JSON.stringify([versionOf(run), nameContender(run)]);
    const known = newest.get(key);
    if (!known || known.created_at < run.created_at) newest.set(key, run);
  }
  return [...newest.values()];
}

export const listContenders = (runs: readonly RunInfo[]): string[] =>
  [...new Set(runs.map(nameContender))].sort((a, b) => a.localeCompare(b));
