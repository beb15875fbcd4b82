/** Where two texts differ: what is left without their common beginning and end, in whole words. */

export type Span = { from: number; to: number };

export function findChangedSpans(a: string, b: string): { a: Span; b: Span } | null {
  if (a === b) return null;
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < shorter - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  start = toWordStart(a, start);
  return {
    a: { from: start, to: toWordEnd(a, a.length - end) },
    b: { from: start, to: toWordEnd(b, b.length - end) },
  };
}

const isWord = (letter: string | undefined): boolean => letter !== undefined && /[\p{L}\p{N}_]/u.test(letter);

function toWordStart(text: string, at: number): number {
  let from = at;
  while (from > 0 && isWord(text[from - 1])) from -= 1;
  return from;
}

function toWordEnd(text: string, at: number): number {
  let to = at;
  while (to > 0 && to < text.length && isWord(text[to - 1]) && isWord(text[to])) to += 1;
  return to;
}
