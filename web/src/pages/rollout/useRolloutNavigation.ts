/** Where a reader goes from a rollout: to a step, to a neighbour, to another way of showing it. */
import { getRouteApi, useLocation } from "@tanstack/react-router";
import type { RolloutAddress } from "#/api/rollouts";
import { changeSearch, type SearchChange } from "#/app/search";
import type { RolloutSearch } from "./search";

const route = getRouteApi("/runs/$runId/t/$taskKey/$number");

export type Neighbour = readonly [key: string, number: number] | null;

export const useAddress = (): RolloutAddress => {
  const { runId, taskKey, number } = route.useParams();
  return { runId, taskKey, number: Number(number) };
};

/** The step that the address names; null if it names none. */
export function useStepInAddress(): number | null {
  const hash = useLocation({ select: (location) => location.hash });
  const found = /^m(\d{1,9})$/.exec(hash);
  return found ? Number(found[1]) : null;
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
