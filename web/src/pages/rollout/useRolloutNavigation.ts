/** Where a reader goes from a rollout: to a step, to a neighbour, to another way of showing it. */
import { getRouteApi, useLocation } from "@tanstack/react-router";
import { useMemo } from "react";
import type { RolloutAddress } from "#/api/rollouts";
import type { RolloutFilter } from "#/api/types";
import { changeSearch, type SearchChange } from "#/app/search";
import { type RolloutSearch, readFilter, readStep } from "./search";

const route = getRouteApi("/runs/$runId/t/$taskKey/$number");

export type Neighbour = readonly [key: string, number: number] | null;

export const useAddress = (): RolloutAddress => {
  const { runId, taskKey, number } = route.useParams();
  return { runId, taskKey, number: Number(number) };
};

/** Which rollouts the reader walks through. */
export function useFilter(): RolloutFilter {
  const search = route.useSearch();
  return useMemo(() => readFilter(search), [search]);
}

/** The step that the address names; null if it names none. */
export function useStepInAddress(): number | null {
  return readStep(useLocation({ select: (location) => location.hash }));
}

export function useRolloutNavigation() {
  const navigate = route.useNavigate();
  const { runId } = route.useParams();
  return {
    toStep: (index: number) =>
      void navigate({
        search: (before) => before,
        hash: `m${index}`,
        replace: true,
        resetScroll: false,
        hashScrollIntoView: false,
      }),
    toNeighbour: (neighbour: Neighbour) =>
      neighbour &&
      void navigate({
        params: { runId, taskKey: neighbour[0], number: String(neighbour[1]) },
        search: (before) => before,
        hash: "",
      }),
    change: (change: SearchChange<RolloutSearch>) =>
      void navigate({
        search: (before) => changeSearch(before, change),
        hash: true,
        replace: true,
        resetScroll: false,
        hashScrollIntoView: false,
      }),
  };
}
