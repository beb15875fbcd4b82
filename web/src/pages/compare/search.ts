/** Which runs are compared, with which, by what, and which of their tasks are listed: all in the address. */
import type { CompareQuery, RunInfo } from "#/api/types";
import { compact, type RawSearch, readChoice, readList, readNumber, readText } from "#/app/search";

export const ONLY = ["flips", "differences"] as const;

export const readCompareSearch = (search: RawSearch) =>
  compact({
    runs: readList(splitRuns(search.runs))?.join(","),
    base: readText(search.base),
    metric: readText(search.metric),
    margin: readMargin(search.margin),
    only: readChoice(search.only, ONLY),
    q: readText(search.q),
    sort: readChoice(search.sort, ["task"] as const),
  });

export type CompareSearch = ReturnType<typeof readCompareSearch>;

/** Ids with commas between them, or a parameter for each. */
export const splitRuns = (runs: unknown): string[] => [
  ...new Set(
    [runs]
      .flat()
      .flatMap((each) => String(each ?? "").split(","))
      .map((id) => id.trim())
      .filter(Boolean),
  ),
];

/** A margin is above 0; anything else is none. */
export function readMargin(value: unknown): number | undefined {
  const margin = readNumber(value);
  return margin !== undefined && margin > 0 ? margin : undefined;
}

export function buildCompareQuery(search: CompareSearch): Omit<CompareQuery, "offset" | "limit"> {
  const { runs, base, ...rest } = search;
  const run = splitRuns(runs);
  return { ...rest, run, ...(base && run.includes(base) ? { base } : {}) };
}

/** Names that tell the runs apart: the name, else the model, else the id; with the id where two are alike. */
export function nameRuns(runs: readonly RunInfo[]): Map<string, string> {
  const isSame = (of: (run: RunInfo) => string) => new Set(runs.map(of)).size === 1;
  const short = (run: RunInfo): string => {
    if (run.name) return run.name;
    const parts = [isSame((each) => each.environment) ? "" : run.environment, run.model];
    return parts.filter(Boolean).join(" · ") || run.id;
  };
  const names = runs.map(short);
  return new Map(
    runs.map((run, index) => {
      const name = names[index] ?? run.id;
      return [run.id, names.filter((each) => each === name).length > 1 ? `${name} (${run.id})` : name];
    }),
  );
}
