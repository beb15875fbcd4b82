/** Marks what is sought in the part of a trace that is in the page, without changing the page (CSS highlights). */
import { type RefObject, useEffect } from "react";

const NAME = "find";
const MOST_RANGES = 2_000;

export function useHighlight(
  box: RefObject<HTMLElement | null>,
  text: string,
  ...occasions: readonly unknown[]
): void {
  const when = JSON.stringify(occasions);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the occasions are why, not what
  useEffect(() => {
    if (!("highlights" in CSS) || !box.current || text === "") return;
    CSS.highlights.set(NAME, new Highlight(...findRanges(box.current, text)));
    return () => void CSS.highlights.delete(NAME);
  }, [box, text, when]);
}

function findRanges(root: Node, text: string): Range[] {
  const wanted = text.toLowerCase();
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found: Range[] = [];
  while (walker.nextNode() && found.length < MOST_RANGES) {
    const node = walker.currentNode;
    const lower = node.nodeValue?.toLowerCase() ?? "";
    if (lower.length !== node.nodeValue?.length) continue; // offsets would be wrong
    for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      found.push(range);
    }
  }
  return found;
}
