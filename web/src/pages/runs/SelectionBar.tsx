/** What can be done with the selected runs. */
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { announce } from "#/app/announcer";
import { useKeys } from "#/app/keys";
import { Button } from "#/design/Button";
import type { Selection } from "#/parts/VirtualTable";
import { words } from "#/words";
import styles from "./SelectionBar.module.css";

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

export function SelectionBar({ selection }: { selection: RunSelection }) {
  const { ids, clear } = selection;
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
  }, [ids]);
  if (ids.length === 0) return null;
  return (
    <div className={styles.bar}>
      <span>{words.table.selected(ids.length)}</span>
      <Button
        look="primary"
        icon="compare"
        disabled={ids.length < 2}
        onClick={compare}
        title={words.runs.compareHint}
      >
        {words.nav.compare}
      </Button>
      <Button look="quiet" onClick={clear}>
        {words.table.clearSelection}
      </Button>
    </div>
  );
}
