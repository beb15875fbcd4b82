/** Sums of what was used: by day for the chart, by model, run or user for the table. Knows nothing of React. */
import type { UsageTotal } from "#/api/types";

export type UsageGroup = "model" | "run" | "user";
export type DayTotal = { day: string; cost: number; requests: number };
export type KeyTotal = { key: string; requests: number; input: number; output: number; cost: number | null };

const DAY_MS = 86_400_000;

/** Every day of a period, also those on which nothing was used; the oldest first. */
export function sumByDay(lines: readonly UsageTotal[], days: number, now: Date): DayTotal[] {
  const found = new Map<string, DayTotal>();
  for (let back = days - 1; back >= 0; back -= 1) {
    const day = new Date(now.getTime() - back * DAY_MS).toISOString().slice(0, 10);
    found.set(day, { day, cost: 0, requests: 0 });
  }
  for (const line of lines) {
    const total = found.get(line.day ?? "");
    if (!total) continue;
    total.cost += line.cost_usd ?? 0;
    total.requests += line.requests;
  }
  return [...found.values()];
}

/** One line for each model, run or user, the most expensive first. */
export function sumByKey(lines: readonly UsageTotal[], group: UsageGroup): KeyTotal[] {
  const found = new Map<string, KeyTotal>();
  for (const line of lines) {
    const key = line[group] ?? "";
    const before = found.get(key) ?? { key, requests: 0, input: 0, output: 0, cost: null };
    found.set(key, {
      key,
      requests: before.requests + line.requests,
      input: before.input + line.input_tokens,
      output: before.output + line.output_tokens,
      cost: line.cost_usd === null ? before.cost : (before.cost ?? 0) + line.cost_usd,
    });
  }
  return [...found.values()].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || b.requests - a.requests);
}
