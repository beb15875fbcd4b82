/** A run beside the base, with how it compares; and the words and figures that several parts of the page share. */
import type { ComparedMeasure, Comparison, RunInfo } from "#/api/types";
import type { Tone } from "#/design/Badge";
import type { IconName } from "#/design/Icon";
import { formatScore } from "#/parts/format";

export type ComparedPair = { run: RunInfo["id"]; name: string; comparison: Comparison };

type Look = { tone: Tone; icon: IconName };

export const VERDICT_LOOKS: Record<ComparedMeasure["verdict"], Look> = {
  better: { tone: "good", icon: "arrowUp" },
  worse: { tone: "bad", icon: "arrowDown" },
  higher: { tone: "info", icon: "arrowUp" },
  lower: { tone: "info", icon: "arrowDown" },
  no_difference_shown: { tone: "neutral", icon: "minus" },
  too_little_data: { tone: "warn", icon: "alert" },
};

/** A difference always has its sign. */
export function formatDifference(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const text = formatScore(Math.abs(value));
  if (value === 0) return "0";
  return `${value > 0 ? "+" : "−"}${text}`;
}

export const formatDifferences = (low: number, high: number): string =>
  `${formatDifference(low)} to ${formatDifference(high)}`;

export function formatP(p: number | null | undefined): string {
  if (p === null || p === undefined) return "–";
  return p < 0.001 ? "< 0.001" : formatScore(p);
}
