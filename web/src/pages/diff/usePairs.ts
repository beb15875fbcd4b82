/** The state of a diff's reader: which pair is current, which are folded, rendered or raw. */
import { getRouteApi, useLocation } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { RolloutDiff } from "#/api/types";
import { useKeys } from "#/app/keys";
import { findNext } from "#/trace/steps";
import { words } from "#/words";

const route = getRouteApi("/diff");

export type PairsState = ReturnType<typeof usePairs>;

export function usePairs(diff: RolloutDiff) {
  const count = diff.pairs.length;
  const hash = useLocation({ select: (location) => location.hash });
  const linked = /^p(\d{1,9})$/.exec(hash);
  const current = Math.min(count - 1, linked ? Number(linked[1]) : (diff.first ?? 0));
  const differing = useMemo(
    () => diff.pairs.flatMap((pair, index) => (pair.differences.length > 0 ? [index] : [])),
    [diff],
  );
  const [toggled, setToggled] = useState<ReadonlySet<number>>(new Set());
  const [isRaw, setRaw] = useState(false);
  const navigate = route.useNavigate();
  const select = (index: number) =>
    void navigate({
      search: (before) => before,
      hash: `p${index}`,
      replace: true,
      resetScroll: false,
      hashScrollIntoView: false,
    });
  const toggle = (index: number) =>
    setToggled((before) => {
      const after = new Set(before);
      if (!after.delete(index)) after.add(index);
      return after;
    });
  const jump = (step: 1 | -1) => {
    const next = findNext(differing, current, step);
    if (next !== null) select(next);
  };
  const move = (step: number) => select(Math.min(count - 1, Math.max(0, current + step)));
  const text = words.diff.keys;
  useKeys([
    { keys: "j", label: text.next, run: () => move(1) },
    { keys: "k", label: text.previous, run: () => move(-1) },
    { keys: "n", label: text.nextDifference, run: () => jump(1) },
    { keys: "N", label: text.previousDifference, run: () => jump(-1) },
    { keys: "o", label: text.fold, run: () => toggle(current) },
    { keys: "r", label: text.raw, run: () => setRaw((before) => !before) },
  ]);
  return {
    current,
    linked: linked !== null,
    differing,
    select,
    toggle,
    isRaw,
    setRaw,
    jump,
    /** What is the same on both sides is folded until somebody wants to see it. */
    isFolded: (index: number) => ((diff.pairs[index]?.differences.length ?? 0) === 0) !== toggled.has(index),
  };
}
