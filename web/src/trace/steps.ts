/** The events of a rollout as steps: which of them a filter shows, which failed, and how tall they may be. */
import type { EventBrief } from "#/api/types";

export const SHOWN_KINDS = ["reasoning", "tools", "system", "judge"] as const;
export type ShownKind = (typeof SHOWN_KINDS)[number];
export type ShownKinds = ReadonlySet<ShownKind>;

export const AGENT = "agent";
const SYSTEM_ROLES = new Set(["system", "developer"]);

/** Up to so many steps and characters, all of a trace is in the page, so that the browser can find and print it. */
const MOST_PLAIN_STEPS = 500;
const MOST_PLAIN_CHARACTERS = 400_000;

export const isSideCall = (event: EventBrief): boolean => event.type === "call" && event.role !== AGENT;

/** Whether a filter shows a step. Messages of users and models always are, unless they hold only hidden parts. */
export function isShown(event: EventBrief, shown: ShownKinds): boolean {
  if (isSideCall(event)) return shown.has("judge");
  if (SYSTEM_ROLES.has(event.role)) return shown.has("system");
  if (event.role === "tool") return shown.has("tools");
  const hasText = event.size > 0 || event.images > 0;
  const hasTools = event.tools.length > 0;
  const hasReasoning = event.reasoning_size > 0;
  if (hasText || !(hasTools || hasReasoning)) return true;
  return (hasTools && shown.has("tools")) || (hasReasoning && shown.has("reasoning"));
}

export const listShown = (events: readonly EventBrief[], shown: ShownKinds): number[] =>
  events.filter((event) => isShown(event, shown)).map((event) => event.index);

export const hasFailed = (event: EventBrief): boolean =>
  (event.call !== null && event.call.error !== "") || event.tools.some((tool) => tool.is_error);

/** Where a step stands among those shown; a hidden one leads to the one before it. */
export function findPosition(shown: readonly number[], index: number): number {
  let [low, high] = [0, shown.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((shown[middle] ?? 0) <= index) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** The next of some steps after one, in a direction, around the end. */
export function findNext(wanted: readonly number[], from: number, step: 1 | -1): number | null {
  const found = step === 1 ? wanted.find((each) => each > from) : wanted.findLast((each) => each < from);
  return found ?? (step === 1 ? wanted[0] : wanted.at(-1)) ?? null;
}

const countCharacters = (event: EventBrief): number =>
  event.size +
  event.reasoning_size +
  event.tools.reduce((sum, tool) => sum + tool.result_size + tool.arguments_preview.length, 0);

export const needsWindows = (events: readonly EventBrief[]): boolean =>
  events.length > MOST_PLAIN_STEPS ||
  events.reduce((sum, event) => sum + countCharacters(event), 0) > MOST_PLAIN_CHARACTERS;

const LINE_CHARACTERS = 90;
const LINE_HEIGHT = 21;
const HEADER_HEIGHT = 64;
const TALLEST = 2_400;

/** In pixels, before it was measured. */
export function estimateHeight(event: EventBrief): number {
  const lines = Math.ceil(countCharacters(event) / LINE_CHARACTERS) + 3 * event.tools.length;
  return HEADER_HEIGHT + Math.min(TALLEST, lines * LINE_HEIGHT);
}
