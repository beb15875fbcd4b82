/** Marks the words that differ in a pair of steps, without changing the page (CSS highlights). */
import { type RefObject, useEffect } from "react";
import { findChangedSpans, type Span } from "./changedSpan";

const NAME = "differs";
const CONTENT = "article";

export function useDifferenceMarks(
  row: RefObject<HTMLElement | null>,
  isWanted: boolean,
  occasion: unknown,
): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the occasion is why, not what
  useEffect(() => {
    const [a, b] = ["a", "b"].map((side) => row.current?.querySelector(`[data-side=${side}] ${CONTENT}`));
    if (!isWanted || !("highlights" in CSS) || !a || !b) return;
    const [textsA, textsB] = [listTexts(a), listTexts(b)];
    const spans = findChangedSpans(joinTexts(textsA), joinTexts(textsB));
    if (!spans) return;
    const ranges = [...buildRanges(textsA, spans.a), ...buildRanges(textsB, spans.b)];
    const highlight = CSS.highlights.get(NAME) ?? new Highlight();
    CSS.highlights.set(NAME, highlight);
    for (const range of ranges) highlight.add(range);
    return () => {
      for (const range of ranges) highlight.delete(range);
    };
  }, [row, isWanted, occasion]);
}

/** The texts of a step without its heading, whose figures always differ. */
function listTexts(root: Element): Text[] {
  const head = root.querySelector("header");
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found: Text[] = [];
  while (walker.nextNode()) if (!head?.contains(walker.currentNode)) found.push(walker.currentNode as Text);
  return found;
}

const joinTexts = (texts: readonly Text[]): string => texts.map((text) => text.data).join("");

function buildRanges(texts: readonly Text[], { from, to }: Span): Range[] {
  const ranges: Range[] = [];
  let at = 0;
  for (const text of texts) {
    const [start, end] = [Math.max(from, at) - at, Math.min(to, at + text.length) - at];
    if (start < end) {
      const range = new Range();
      range.setStart(text, start);
      range.setEnd(text, end);
      ranges.push(range);
    }
    at += text.length;
  }
  return ranges;
}
