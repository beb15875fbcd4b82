/** Ctrl-K: type where you want to go; pages at once, runs as the server finds them. */
import { Dialog as Base } from "@base-ui/react/dialog";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useRef, useState } from "react";
import { api, read } from "#/api/client";
import dialog from "#/design/Dialog.module.css";
import { Icon, type IconName } from "#/design/Icon";
import { StatusMark } from "#/parts/Status";
import { words } from "#/words";
import { useNavigation } from "./navigation";
import styles from "./Palette.module.css";

type Target = { id: string; label: string; note: React.ReactNode; icon: IconName; go: () => void };

const MOST_RUNS = 8;

export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const targets = useTargets(text);
  const id = useId();
  const at = Math.min(chosen, Math.max(0, targets.length - 1));
  const open = (target: Target | undefined) => {
    if (!target) return;
    onClose();
    target.go();
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") open(targets[at]);
    else if (step) setChosen((at + step + targets.length) % Math.max(1, targets.length));
    else return;
    event.preventDefault();
  };
  return (
    <Base.Root open onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={dialog.backdrop} />
        <Base.Popup className={dialog.popup} aria-label={words.palette.label}>
          <div className={styles.field}>
            <Icon name="search" />
            <input
              className={styles.input}
              role="combobox"
              aria-expanded="true"
              aria-controls={`${id}-list`}
              aria-activedescendant={targets[at] ? `${id}-${at}` : undefined}
              aria-label={words.palette.placeholder}
              placeholder={words.palette.placeholder}
              value={text}
              onChange={(event) => {
                setText(event.target.value);
                setChosen(0);
              }}
              onKeyDown={onKey}
              autoComplete="off"
              spellCheck={false}
            />
          </div>
          <TargetList id={id} targets={targets} at={at} onOpen={open} onPoint={setChosen} />
          {targets.length === 0 && <p className={styles.nothing}>{words.palette.nothing(text)}</p>}
          <p className={styles.hint}>{words.palette.hint}</p>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

type ListProps = {
  id: string;
  targets: Target[];
  at: number;
  onOpen: (target: Target) => void;
  onPoint: (at: number) => void;
};

function TargetList({ id, targets, at, onOpen, onPoint }: ListProps) {
  const active = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the chosen line has changed
  useEffect(() => active.current?.scrollIntoView({ block: "nearest" }), [at]);
  return (
    <div role="listbox" id={`${id}-list`} aria-label={words.palette.label} className={styles.list}>
      {targets.map((target, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keyboard
        <div
          key={target.id}
          ref={index === at ? active : null}
          role="option"
          id={`${id}-${index}`}
          aria-selected={index === at}
          tabIndex={-1}
          className={styles.option}
          onClick={() => onOpen(target)}
          onPointerMove={() => onPoint(index)}
        >
          <Icon name={target.icon} />
          <span className={styles.label}>{target.label}</span>
          <span className={styles.note}>{target.note}</span>
        </div>
      ))}
    </div>
  );
}

function useTargets(text: string): Target[] {
  const navigate = useNavigate();
  const listed = useNavigation();
  const q = useDeferredValue(text.trim());
  const found = useQuery({
    queryKey: ["runs", "palette", q],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/runs", { params: { query: { ...(q ? { q } : {}), limit: MOST_RUNS } }, signal })),
    placeholderData: keepPreviousData,
    meta: { quiet: true },
    retry: false,
  });
  const pages = listed
    .filter(({ label }) => label.toLowerCase().includes(q.toLowerCase()))
    .map((item) => ({
      id: item.to,
      label: item.label,
      note: `g ${item.key}`,
      icon: item.icon,
      go: () => void navigate({ to: item.to }),
    }));
  const runs = (found.data?.items ?? []).map((run) => ({
    id: run.id,
    label: run.name || run.environment,
    note: (
      <>
        {run.model} <StatusMark status={run.status} />
      </>
    ),
    icon: "play" as const,
    go: () => void navigate({ to: "/runs/$runId", params: { runId: run.id } }),
  }));
  return [...pages, ...runs];
}
