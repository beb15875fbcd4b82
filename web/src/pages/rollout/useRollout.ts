/** A rollout as far as it is known: the beginning of a long one comes first, and the rest of it follows. */
import { useQuery } from "@tanstack/react-query";
import { beginningQuery, isWhole, type RolloutAddress, rolloutQuery } from "#/api/rollouts";
import type { RolloutFilter } from "#/api/types";
import { isInBeginning } from "./search";
import { useStepInAddress } from "./useRolloutNavigation";

export function useRollout(address: RolloutAddress, filter: RolloutFilter) {
  const canBegin = isInBeginning(useStepInAddress());
  const beginning = useQuery({ ...beginningQuery(address, filter), enabled: canBegin });
  const isLong = beginning.data ? !isWhole(beginning.data) : !canBegin;
  const whole = useQuery({ ...rolloutQuery(address, filter), enabled: isLong });
  return {
    data: whole.data ?? beginning.data,
    error: whole.error ?? beginning.error,
    retry: () => void (isLong ? whole : beginning).refetch(),
  };
}
