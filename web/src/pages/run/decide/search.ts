/** What is asked of a run: its policy, its baseline and the goal of a plan, all in the address. */
import { compact, type RawSearch, readChoice, readNumber, readText } from "#/app/search";

export const GOALS = ["halfwidth", "difference", "budget"] as const;
export type Goal = (typeof GOALS)[number];

export const LONGEST_POLICY = 8_000;

export const readDecideSearch = (search: RawSearch) =>
  compact({
    policy: readText(search.policy)?.slice(0, LONGEST_POLICY),
    baseline: readText(search.baseline),
    goal: readChoice(search.goal, GOALS),
    amount: readAmount(search.amount),
  });

export type DecideSearch = ReturnType<typeof readDecideSearch>;

/** An amount is above 0; anything else is none. */
export function readAmount(value: unknown): number | undefined {
  const amount = readNumber(value);
  return amount !== undefined && amount > 0 ? amount : undefined;
}
