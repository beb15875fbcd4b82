import { expect, test } from "vitest";
import type { UsageTotal } from "#/api/types";
import { sumByDay, sumByKey } from "./usage";

const line = (given: Partial<UsageTotal>): UsageTotal => ({
  day: "2026-11-17",
  model: "m",
  run: null,
  user: null,
  requests: 1,
  input_tokens: 10,
  output_tokens: 5,
  cached_tokens: 0,
  cost_usd: 0.5,
  estimated_requests: 0,
  ...given,
});

test("days without use are in the chart as well", () => {
  const now = new Date("2026-11-17T12:00:00Z");
  const totals = sumByDay([line({}), line({ model: "other", cost_usd: null })], 3, now);
  expect(totals.map(({ day, cost, requests }) => [day, cost, requests])).toEqual([
    ["2026-11-15", 0, 0],
    ["2026-11-16", 0, 0],
    ["2026-11-17", 0.5, 2],
  ]);
});

test("the most expensive comes first, and what has no price has no cost", () => {
  const lines = [line({ model: "free", cost_usd: null }), line({}), line({ day: "2026-11-16" })];
  expect(sumByKey(lines, "model").map(({ key, cost, input }) => [key, cost, input])).toEqual([
    ["m", 1, 20],
    ["free", null, 10],
  ]);
});

test("requests outside runs are one line", () => {
  expect(sumByKey([line({}), line({})], "run").map(({ key, requests }) => [key, requests])).toEqual([
    ["", 2],
  ]);
});
