/** The search parameters of a rollout's page: how it is shown, which kinds of steps, and the list it is read in. */
import { EVENTS_OF_BEGINNING } from "#/api/rollouts";
import type { RolloutFilter } from "#/api/types";
import { compact, type RawSearch, readChoice, readList } from "#/app/search";
import { buildRolloutQuery, readSampleSearch, type SampleSearch } from "#/pages/run/samples/search";
import { SHOWN_KINDS, type ShownKind, type ShownKinds } from "#/trace/steps";

export const VIEWS = ["rendered", "raw", "sent"] as const;
export type View = (typeof VIEWS)[number];
export type RolloutSearch = { view?: View; show?: string[] } & Omit<SampleSearch, "view" | "cols">;

const NONE = "none";

export function readRolloutSearch(search: RawSearch): RolloutSearch {
  const { view: _, cols: __, ...list } = readSampleSearch(search);
  return compact({ ...list, view: readChoice(search.view, VIEWS), show: readList(search.show) });
}

/** What of the address is about the list that the rollout is read in. */
export function readFilter({ view: _, show: __, ...list }: RolloutSearch): RolloutFilter {
  return Object.keys(list).length > 0 ? buildRolloutQuery(list) : {};
}

/** The step that the fragment of an address names; null if it names none. */
export function readStep(hash: string): number | null {
  const found = /^m(\d{1,9})$/.exec(hash);
  return found ? Number(found[1]) : null;
}

/** Whether the beginning of a rollout is enough to show a step. */
export const isInBeginning = (step: number | null): boolean => (step ?? 0) < EVENTS_OF_BEGINNING;

/** Without the parameter, everything is shown. */
export const readShown = (show: readonly string[] | undefined): ShownKinds =>
  new Set(show === undefined ? SHOWN_KINDS : SHOWN_KINDS.filter((kind) => show.includes(kind)));

export function writeShown(shown: ShownKinds): string[] | undefined {
  if (shown.size === SHOWN_KINDS.length) return undefined;
  return shown.size === 0 ? [NONE] : SHOWN_KINDS.filter((kind) => shown.has(kind));
}

export function toggleKind(shown: ShownKinds, kind: ShownKind): ShownKinds {
  const next = new Set(shown);
  if (!next.delete(kind)) next.add(kind);
  return next;
}
