/** The filters, the order and the columns of the list of runs, as they stand in its address. */
import { RUN_STATUSES } from "#/api/runs";
import type { RunListQuery, RunSort } from "#/api/types";
import {
  compact,
  type RawSearch,
  readChoice,
  readChoices,
  readFlag,
  readList,
  readNumber,
  readText,
} from "#/app/search";
import { COLUMN_IDS } from "./columnIds";

export const SORTS = [
  "created",
  "ended",
  "score",
  "coverage",
  "cost",
  "duration",
  "environment",
  "model",
  "name",
] as const satisfies readonly RunSort[];
export const KINDS = ["hosted", "local"] as const;

export const readRunSearch = (search: RawSearch) =>
  compact({
    q: readText(search.q),
    status: readChoices(search.status, RUN_STATUSES),
    kind: readChoices(search.kind, KINDS),
    environment: readList(search.environment),
    model: readList(search.model),
    agent: readList(search.agent),
    owner: readList(search.owner),
    team: readList(search.team),
    dataset: readList(search.dataset),
    tag: readList(search.tag),
    suite: readText(search.suite),
    since: readNumber(search.since),
    sort: readChoice(search.sort, SORTS),
    ascending: readFlag(search.ascending),
    cols: readChoices(search.cols, COLUMN_IDS),
    new: readText(search.new),
  });

export type RunSearch = ReturnType<typeof readRunSearch>;

/** What of the address the server is asked. */
export function buildListQuery(search: RunSearch): RunListQuery {
  const { cols: _, new: __, ascending, ...filters } = search;
  return { ...filters, ...(ascending ? { descending: false } : {}) };
}

export const FILTER_NAMES = [
  "status",
  "kind",
  "environment",
  "model",
  "agent",
  "owner",
  "team",
  "dataset",
  "tag",
] as const;

export const isFiltered = (search: RunSearch): boolean =>
  Boolean(search.q || search.suite || search.since) ||
  FILTER_NAMES.some((name) => search[name] !== undefined);
