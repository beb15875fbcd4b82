/** The times of a rollout as stretches of a bar: its phases, and the model calls inside them. */
import type { EventBrief, RowTiming } from "#/api/types";
import { AGENT } from "#/trace/steps";

export type Phase = { name: "setup" | "generation" | "scoring"; from: number; to: number };
export type CallStretch = { from: number; to: number; step: number; kind: "agent" | "other" | "failed" };
export type Timeline = { phases: Phase[]; calls: CallStretch[]; total: number; model: number };

/** So many stretches at most: neighbours that would share a pixel are drawn as one. */
const MOST_STRETCHES = 400;
const PHASES = ["setup", "generation", "scoring"] as const;

/** Shares of the rollout's time, from 0 to 1; null for a row that says too little about time. */
export function buildTimeline(timing: RowTiming | null, events: readonly EventBrief[]): Timeline | null {
  if (!timing || timing.total <= 0 || timing.start_time <= 0) return null;
  const share = (at: number) => Math.min(1, Math.max(0, (at - timing.start_time) / timing.total));
  const phases = PHASES.map((name) => ({
    name,
    from: share(timing[name].start),
    to: share(timing[name].end),
  })).filter(({ from, to }) => to > from);
  const calls = events
    .filter((event) => event.call !== null && event.call.start > 0)
    .map((event) => stretchOf(event, share))
    .toSorted((a, b) => a.from - b.from);
  if (phases.length === 0 && calls.length === 0) return null;
  return { phases, calls: merge(calls), total: timing.total, model: timing.model.duration };
}

function stretchOf(event: EventBrief, share: (at: number) => number): CallStretch {
  const { start = 0, seconds = 0, role = AGENT, error = "" } = event.call ?? {};
  const kind = error ? "failed" : role === AGENT ? "agent" : "other";
  return { from: share(start), to: share(start + seconds), step: event.index, kind };
}

function merge(calls: readonly CallStretch[]): CallStretch[] {
  const merged: CallStretch[] = [];
  for (const call of calls) {
    const last = merged.at(-1);
    const isNear = last && call.from - last.from < 1 / MOST_STRETCHES;
    if (last && isNear && calls.length > MOST_STRETCHES / 4) {
      last.to = Math.max(last.to, call.to);
      if (call.kind === "failed") last.kind = "failed";
    } else merged.push({ ...call });
  }
  return merged;
}
