import { expect, test } from "vitest";
import type { LogPage } from "#/api/types";
import { addAfter, addBefore, findRow, hasLine, listRows, openWindow } from "./logWindow";

const page = (numbers: number[], given: Partial<LogPage> = {}): LogPage => ({
  items: numbers.map((number) => ({ number, at: null, level: "INFO", text: `line ${number}` })),
  more_before: false,
  more_after: false,
  is_complete: false,
  ...given,
});
const numbersOf = (window: { entries: readonly { number: number }[] }) =>
  window.entries.map(({ number }) => number);

test("a window grows at both ends, and a line that comes twice is there once", () => {
  let window = openWindow(page([4, 5], { more_before: true }));
  window = addBefore(window, page([1, 3, 4]));
  window = addAfter(window, page([5, 6, 9], { is_complete: true }));
  expect(numbersOf(window)).toEqual([1, 3, 4, 5, 6, 9]);
  expect(window).toMatchObject({ moreBefore: false, moreAfter: false, isComplete: true });
});

test("a long window is cut at the end that nobody looks at, and says so", () => {
  const window = openWindow(page([4, 5, 6]));
  const before = addBefore(window, page([2, 3], { more_before: true }), 4);
  expect(numbersOf(before)).toEqual([2, 3, 4, 5]);
  expect(before.moreAfter).toBe(true);
  const after = addAfter(window, page([7, 8]), 4);
  expect(numbersOf(after)).toEqual([5, 6, 7, 8]);
  expect(after.moreBefore).toBe(true);
});

test("a poll that brings nothing changes nothing", () => {
  const window = openWindow(page([1, 2]));
  expect(addAfter(window, page([]))).toBe(window);
});

test("an entry of several lines has several rows, and a number that has no line leads to the next", () => {
  const window = openWindow(page([2, 5]));
  const entries = window.entries.map((entry) => ({ ...entry, text: "first\r\nsecond" }));
  const rows = listRows(entries);
  expect(rows.map(({ text, part }) => [text, part])).toEqual([
    ["first", 0],
    ["second", 1],
    ["first", 0],
    ["second", 1],
  ]);
  expect(findRow(rows, 3)).toBe(2);
  expect(findRow(rows, 99)).toBe(3);
  expect(hasLine(window, 3)).toBe(true);
  expect(hasLine(window, 6)).toBe(false);
});
