/** Reports which rows are visible, when that has changed; nothing while none are (then `last` is below `first`). */
import { useEffect, useEffectEvent } from "react";

export function useRange(
  first: number,
  last: number,
  onRange: ((first: number, last: number) => void) | undefined,
): void {
  const report = useEffectEvent((from: number, to: number) => {
    if (to >= from) onRange?.(from, to);
  });
  useEffect(() => report(first, last), [first, last]);
}
