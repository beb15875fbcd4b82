/**
 * Keys without modifiers, single (`j`) or in sequence (`g r`). Components bind them while they are mounted;
 * the latest binding of a key wins. Nothing fires while somebody types, or below an open dialog.
 */
import { useEffect, useEffectEvent, useId } from "react";
import { createStore } from "./store";

export type KeyBinding = { keys: string; label: string; run: () => void; hidden?: boolean };

const SEQUENCE_MS = 1000;
const NAMES: Record<string, string> = {
  Escape: "Esc",
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
};

export const bindings = createStore<readonly { id: string; bindings: readonly KeyBinding[] }[]>([]);

export function useKeys(given: readonly KeyBinding[]): void {
  const id = useId();
  const run = useEffectEvent((keys: string) => given.find((each) => each.keys === keys)?.run());
  const described = JSON.stringify(given.map(({ keys, label, hidden }) => ({ keys, label, hidden })));
  useEffect(() => {
    const parsed = JSON.parse(described) as Omit<KeyBinding, "run">[];
    const bound = parsed.map((each) => ({ ...each, run: () => run(each.keys) }));
    bindings.set((now) => [...now, { id, bindings: bound }]);
    return () => bindings.set((now) => now.filter((each) => each.id !== id));
  }, [id, described]);
}

export const nameKey = (keys: string): string[] => keys.split(" ").map((key) => NAMES[key] ?? key);

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (
    target.isContentEditable ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement
  )
    return true;
  const silent = ["checkbox", "radio", "button", "submit", "range"];
  return target instanceof HTMLInputElement && !silent.includes(target.type);
}

/** Enter on a link or a button belongs to it. */
const isForControl = (event: KeyboardEvent): boolean =>
  event.key === "Enter" &&
  event.target instanceof Element &&
  event.target.closest("a, button, summary") !== null;

/** What a key does now, given the keys pressed just before it. */
export function findBinding(
  pressed: readonly string[],
  all: readonly KeyBinding[],
): KeyBinding | "more" | null {
  const sequence = pressed.join(" ");
  const exact = all.findLast((each) => each.keys === sequence);
  if (exact) return exact;
  return all.some((each) => each.keys.startsWith(`${sequence} `)) ? "more" : null;
}

/** Listens on the document; returns how to stop. */
export function listenForKeys(document: Document, isBlocked: () => boolean): () => void {
  let pressed: string[] = [];
  let last = 0;
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    if (isTyping(event.target) || isForControl(event) || isBlocked() || event.key === "Shift") return;
    if (event.timeStamp - last > SEQUENCE_MS) pressed = [];
    last = event.timeStamp;
    const all = bindings.get().flatMap((each) => each.bindings);
    let found = findBinding([...pressed, event.key], all);
    pressed = found === "more" ? [...pressed, event.key] : [];
    if (found === null) {
      found = findBinding([event.key], all);
      if (found === "more") pressed = [event.key];
    }
    if (found === null || found === "more") return;
    event.preventDefault();
    found.run();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
