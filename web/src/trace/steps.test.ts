import { describe, expect, it } from "vitest";
import type { EventBrief } from "#/api/types";
import { findNext, findPosition, hasFailed, listShown, needsWindows, SHOWN_KINDS } from "./steps";

const event = (index: number, change: Partial<EventBrief> = {}): EventBrief => ({
  index,
  type: "message",
  role: "assistant",
  size: 10,
  preview: "",
  turn: null,
  in_prompt: false,
  reasoning_size: 0,
  images: 0,
  tools: [],
  call: null,
  ...change,
});
const tool = {
  name: "price",
  arguments_preview: "{}",
  result_index: 3,
  result_preview: "",
  result_size: 4,
  is_error: false,
};
const events = [
  event(0, { role: "system" }),
  event(1, { role: "user" }),
  event(2, { size: 0, tools: [tool] }),
  event(3, { size: 0, reasoning_size: 9 }),
  event(4),
  event(5, { type: "call", role: "judge" }),
];

describe("the steps of a rollout", () => {
  it("are all shown unless a filter hides their kind", () => {
    expect(listShown(events, new Set(SHOWN_KINDS))).toEqual([0, 1, 2, 3, 4, 5]);
    expect(listShown(events, new Set())).toEqual([1, 4]);
    expect(listShown(events, new Set(["tools"] as const))).toEqual([1, 2, 4]);
  });

  it("keep a message that says nothing at all", () => {
    expect(listShown([event(0, { size: 0 })], new Set())).toEqual([0]);
  });

  it("lead from a hidden step to the one before it", () => {
    expect(findPosition([1, 4], 3)).toBe(0);
    expect(findPosition([1, 4], 4)).toBe(1);
    expect(findPosition([1, 4], 0)).toBe(0);
    expect(findPosition([], 7)).toBe(0);
  });

  it("are walked around their end", () => {
    expect(findNext([2, 5], 2, 1)).toBe(5);
    expect(findNext([2, 5], 5, 1)).toBe(2);
    expect(findNext([2, 5], 2, -1)).toBe(5);
    expect(findNext([], 2, 1)).toBeNull();
  });

  it("have failed if their call or one of their tools did", () => {
    expect(events.some(hasFailed)).toBe(false);
    expect(hasFailed(event(0, { tools: [{ ...tool, is_error: true }] }))).toBe(true);
  });

  it("come in windows if they are many or long", () => {
    expect(needsWindows(events)).toBe(false);
    expect(needsWindows(Array.from({ length: 501 }, (_, index) => event(index)))).toBe(true);
    expect(needsWindows([event(0, { size: 10_000_000 })])).toBe(true);
  });
});
