import { describe, expect, it } from "vitest";
import type { EventBrief, RowTiming } from "#/api/types";
import { buildTimeline } from "./timing";

const span = (start: number, end: number) => ({ start, end, duration: end - start });
const timing: RowTiming = {
  start_time: 100,
  setup: span(100, 101),
  generation: span(101, 109),
  scoring: span(109, 110),
  model: { duration: 6 },
  total: 10,
  overhead: 4,
};
const call = (index: number, start: number, seconds: number, error = "", role = "agent"): EventBrief => ({
  index,
  type: "message",
  role: "assistant",
  size: 0,
  preview: "",
  turn: null,
  in_prompt: false,
  reasoning_size: 0,
  images: 0,
  tools: [],
  call: {
    index,
    role,
    model: "m",
    start,
    seconds,
    usage: {},
    cost_usd: null,
    finish_reason: null,
    error,
    altered: false,
  },
});

describe("the timing bar", () => {
  it("shows phases and calls as shares of the whole", () => {
    const found = buildTimeline(timing, [call(1, 101, 4), call(2, 109, 1, "", "judge")]);

    expect(found?.phases.map((phase) => [phase.name, phase.from, phase.to])).toEqual([
      ["setup", 0, 0.1],
      ["generation", 0.1, 0.9],
      ["scoring", 0.9, 1],
    ]);
    expect(found?.calls.map(({ step, kind }) => [step, kind])).toEqual([
      [1, "agent"],
      [2, "other"],
    ]);
  });

  it("stays small for ten thousand calls, and loses no failure", () => {
    const calls = Array.from({ length: 10_000 }, (_, index) =>
      call(index, 100 + index / 1000, 0.001, index === 5_001 ? "refused" : ""),
    );

    const found = buildTimeline(timing, calls)?.calls ?? [];

    expect(found.length).toBeLessThanOrEqual(401);
    expect(found.filter(({ kind }) => kind === "failed")).toHaveLength(1);
  });

  it("is absent where a row knows no times", () => {
    expect(buildTimeline(null, [])).toBeNull();
    expect(buildTimeline({ ...timing, start_time: 0 }, [])).toBeNull();
  });
});
