/** The search parameters of a rollout's page: how it is shown, and which kinds of steps. */
import { compact, type RawSearch, readChoice, readList } from "#/app/search";
import { SHOWN_KINDS, type ShownKind, type ShownKinds } from "#/trace/steps";

export const VIEWS = ["rendered", "raw", "sent"] as const;
export type View = (typeof VIEWS)[number];
export type RolloutSearch = { view?: View; show?: string[] };

const NONE = "none";

export const readRolloutSearch = (search: RawSearch): RolloutSearch =>
  compact({ view: readChoice(search.view, VIEWS), show: readList(search.show) });

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
