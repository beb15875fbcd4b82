/** What can be done with the selected runs. */
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import type { RunInfo } from "#/api/types";
import { announce } from "#/app/announcer";
import { useKeys } from "#/app/keys";
import { Button } from "#/design/Button";
import type { Selection } from "#/parts/VirtualTable";
import { words } from "#/words";
import styles from "./SelectionBar.module.css";

// What is done to runs is loaded when somebody selects one.
const BulkActions = lazy(() =>
  import("#/actions/BulkActions").then((module) => ({ default: module.BulkActions })),
);
const SingleActions = lazy(() =>
  import("./SingleActions").then((module) => ({ default: module.SingleActions })),
);

export type RunSelection = Selection & { ids: readonly string[]; clear: () => void };

export function useSelection(): RunSelection {
  const [ids, setIds] = useState<readonly string[]>([]);
  return {
    ids,
    has: (id) => ids.includes(id),
    toggle: (id) => setIds((now) => (now.includes(id) ? now.filter((each) => each !== id) : [...now, id])),
    clear: () => setIds([]),
  };
}

type Props = {
  selection: RunSelection;
  /** Those that are selected, as far as they are listed. */
  runs: readonly RunInfo[];
};

export function SelectionBar({ selection, runs }: Props) {
  const { clear } = selection;
  const ids = runs.map((run) => run.id); // one that was deleted is no longer selected
  const navigate = useNavigate();
  const compare = () => {
    if (ids.length >= 2) void navigate({ href: `/compare?runs=${ids.map(encodeURIComponent).join(",")}` });
  };
  useKeys([
    { keys: "c", label: words.keys.compare, run: compare },
    { keys: "Escape", label: words.table.clearSelection, run: clear, hidden: true },
  ]);
  useEffect(() => {
    if (ids.length > 0) announce(words.table.selected(ids.length));
  }, [ids.length]);
  if (ids.length === 0) return null;
  return (
    <div className={styles.bar}>
      <span>{words.table.selected(ids.length)}</span>
      <Button
        look="primary"
        small
        icon="compare"
        disabled={ids.length < 2}
        onClick={compare}
        title={words.runs.compareHint}
      >
        {words.nav.compare}
      </Button>
      <Suspense fallback={null}>
        {runs.length === 1 && runs[0] ? (
          <SingleActions key={runs[0].id} run={runs[0]} />
        ) : (
          <BulkActions runs={runs} />
        )}
      </Suspense>
      <Button look="quiet" small onClick={clear}>
        {words.table.clearSelection}
      </Button>
    </div>
  );
}
