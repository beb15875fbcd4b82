/** The scores that a person may give, as typed: numbers with commas between them. */
const MOST = 9;

export const DEFAULT_SCORES = "0,1";

/** In rising order; null if they are not at least two different numbers. */
export function parseScores(typed: string): number[] | null {
  const parts = typed.split(",").map((part) => part.trim());
  const scores = parts.map(Number);
  if (parts.includes("") || scores.some((score) => !Number.isFinite(score))) return null;
  const different = [...new Set(scores)].sort((a, b) => a - b);
  return different.length >= 2 && different.length <= MOST ? different : null;
}

/** A score that is a digit is its own key; others are counted from 1. */
export function nameScoreKey(scores: readonly number[], index: number): string {
  const areDigits = scores.every((score) => Number.isInteger(score) && score >= 0 && score <= 9);
  return areDigits ? String(scores[index]) : String(index + 1);
}
