/**
 * A text as numbered lines without a copy of it: each line is a pair of offsets. A very long line is shown in
 * several rows, so that no row is wider than a screen can draw quickly.
 */

export const LONGEST_ROW = 4_000;

export type TextRow = { number: number; text: string; isContinued: boolean };
export type TextRows = {
  count: number;
  lines: number;
  at: (index: number) => TextRow;
  rowOf: (line: number) => number;
};

export function splitRows(text: string, longest = LONGEST_ROW): TextRows {
  const starts: number[] = [];
  const numbers: number[] = [];
  let from = 0;
  let number = 0;
  while (from <= text.length) {
    const end = text.indexOf("\n", from);
    const to = end < 0 ? text.length : end;
    if (end < 0 && from === text.length && number > 0) break; // a final newline ends the last line
    number += 1;
    for (let start = from; start === from || start < to; start += longest) {
      starts.push(start);
      numbers.push(number);
    }
    from = to + 1;
  }
  starts.push(from);
  return {
    count: numbers.length,
    lines: number,
    at(index) {
      const start = starts[index] ?? 0;
      const next = starts[index + 1] ?? start;
      const isLastOfLine = numbers[index + 1] !== numbers[index];
      return {
        number: numbers[index] ?? 0,
        text: text.slice(start, isLastOfLine ? next - 1 : next).replace(/\r$/, ""),
        isContinued: index > 0 && numbers[index - 1] === numbers[index],
      };
    },
    rowOf: (line) => lowerBound(numbers, line),
  };
}

function lowerBound(sorted: readonly number[], value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const MOST_MATCHES = 10_000;

/** The rows that contain a text, whatever its case. */
export function findRows(rows: Pick<TextRows, "count" | "at">, wanted: string): number[] {
  const lower = wanted.toLowerCase();
  const found: number[] = [];
  if (lower === "") return found;
  for (let index = 0; index < rows.count && found.length < MOST_MATCHES; index++)
    if (rows.at(index).text.toLowerCase().includes(lower)) found.push(index);
  return found;
}

/** A text cut where it matches, for marking: the odd parts are the matches. */
export function cutAtMatches(text: string, wanted: string): string[] {
  if (wanted === "") return [text];
  const lower = text.toLowerCase();
  const needle = wanted.toLowerCase();
  if (lower.length !== text.length) return [text]; // a letter whose lower case is longer: offsets would be wrong
  const parts: string[] = [];
  let at = 0;
  for (let found = lower.indexOf(needle); found >= 0; found = lower.indexOf(needle, at)) {
    parts.push(text.slice(at, found), text.slice(found, found + needle.length));
    at = found + needle.length;
  }
  return [...parts, text.slice(at)];
}
