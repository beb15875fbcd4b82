/** The keys of a table: j, k, Enter, x from anywhere on the page; arrows and paging while it has the focus. */
import { useKeys } from "#/app/keys";
import { words } from "#/words";

type Actions = { move: (step: number) => void; open: () => void; select: (() => void) | undefined };

export function useTableKeys({ move, open, select }: Actions): void {
  useKeys([
    { keys: "j", label: words.keys.next, run: () => move(1) },
    { keys: "k", label: words.keys.previous, run: () => move(-1) },
    { keys: "Enter", label: words.keys.open, run: open },
    ...(select ? [{ keys: "x", label: words.keys.select, run: select }] : []),
  ]);
}

/** How far a key moves the active row; null for a key that does not. */
export function findStep(key: string, page: number, count: number): number | null {
  const steps: Record<string, number> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: Math.max(1, page),
    PageUp: -Math.max(1, page),
    Home: -count,
    End: count,
  };
  return steps[key] ?? null;
}
