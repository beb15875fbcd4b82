/** The state of a trace's reader: which steps are shown, which is current, which are folded, what is sought. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState } from "react";
import { matchesQuery, type RolloutAddress } from "#/api/rollouts";
import type { EventBrief } from "#/api/types";
import { useKeys } from "#/app/keys";
import { findNext, findPosition, hasFailed, listShown, type ShownKinds } from "#/trace/steps";
import { words } from "#/words";
import { readShown, type View, writeShown } from "./search";
import { useRolloutNavigation, useStepInAddress } from "./useRolloutNavigation";

const route = getRouteApi("/runs/$runId/t/$taskKey/$number");

export type Steps = ReturnType<typeof useSteps>;

export function useSteps(address: RolloutAddress, events: readonly EventBrief[]) {
  const search = route.useSearch();
  const shown = useMemo(() => readShown(search.show), [search.show]);
  const visible = useMemo(() => listShown(events, shown), [events, shown]);
  const linked = useStepInAddress();
  const { toStep, change } = useRolloutNavigation();
  const position = findPosition(visible, linked ?? 0);
  const current = visible[position] ?? 0;
  const move = (step: number) => {
    const next = visible[Math.min(visible.length - 1, Math.max(0, position + step))];
    if (next !== undefined) toStep(next);
  };
  const find = useFind(address, visible);
  const jump = (step: 1 | -1) => {
    const failures = events.filter(hasFailed).map((event) => event.index);
    const wanted = find.text ? find.matches : failures.filter((index) => visible.includes(index));
    const next = findNext(wanted, current, step);
    if (next !== null) toStep(next);
  };
  return {
    shown,
    show: (kinds: ShownKinds) => change({ show: writeShown(kinds) }),
    view: search.view ?? ("rendered" as View),
    setView: (view: View) => change({ view: view === "rendered" ? undefined : view }),
    visible,
    linked,
    position,
    current,
    select: toStep,
    move,
    jump,
    find,
    ...useFolds(),
  };
}

/** What is sought: the server finds it, because most of a long trace is not in the page. */
function useFind(address: RolloutAddress, visible: readonly number[]) {
  const [text, setText] = useState("");
  const wanted = useDeferredValue(text.trim());
  const hits = useQuery(matchesQuery(address, wanted));
  const matches = useMemo(() => {
    const shown = new Set(visible);
    const found = (hits.data ?? []).map((hit) => hit.event);
    return found.filter((event): event is number => event !== null && shown.has(event));
  }, [hits.data, visible]);
  return { text: wanted, typed: text, setText, matches, isLoading: hits.isFetching, error: hits.error };
}

function useFolds() {
  const [folded, setFolded] = useState<ReadonlySet<number>>(new Set());
  const toggleFold = (index: number) =>
    setFolded((before) => {
      const after = new Set(before);
      if (!after.delete(index)) after.add(index);
      return after;
    });
  return { folded, toggleFold, foldAll: (indexes: readonly number[]) => setFolded(new Set(indexes)) };
}

export function useStepKeys(steps: Steps): void {
  const text = words.rollout.keys;
  const { view, setView, folded, foldAll, visible } = steps;
  useKeys([
    { keys: "j", label: text.nextStep, run: () => steps.move(1) },
    { keys: "k", label: text.previousStep, run: () => steps.move(-1) },
    { keys: "n", label: text.nextMatch, run: () => steps.jump(1) },
    { keys: "N", label: text.previousMatch, run: () => steps.jump(-1) },
    { keys: "o", label: text.fold, run: () => steps.toggleFold(steps.current) },
    { keys: "O", label: text.foldAll, run: () => foldAll(folded.size > 0 ? [] : visible) },
    { keys: "r", label: text.raw, run: () => setView(view === "raw" ? "rendered" : "raw") },
    { keys: "s", label: text.sent, run: () => setView(view === "sent" ? "rendered" : "sent") },
  ]);
}
