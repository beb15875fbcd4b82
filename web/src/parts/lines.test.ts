import { describe, expect, it } from "vitest";
import { cutAtMatches, findRows, splitRows } from "./lines";

const texts = (rows: ReturnType<typeof splitRows>) =>
  Array.from({ length: rows.count }, (_, index) => rows.at(index).text);

describe("lines of a text", () => {
  it("are numbered as an editor numbers them", () => {
    expect(texts(splitRows("a\n\nb\r\n"))).toEqual(["a", "", "b"]);
    expect(texts(splitRows(""))).toEqual([""]);
    expect(splitRows("a\nb").rowOf(2)).toBe(1);
  });

  it("that are very long continue in further rows of the same number, and nothing is lost", () => {
    const long = "x".repeat(10_000);
    const rows = splitRows(`${long}\nend`, 4_000);
    expect(rows.count).toBe(4);
    expect(texts(rows).slice(0, 3).join("")).toBe(long);
    expect([0, 1, 3].map((index) => [rows.at(index).number, rows.at(index).isContinued])).toEqual([
      [1, false],
      [1, true],
      [2, false],
    ]);
    expect(rows.rowOf(2)).toBe(3);
  });

  it("of ten million characters are split in a blink", () => {
    const started = performance.now();
    expect(splitRows("y".repeat(10_000_000)).count).toBe(2_500);
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  it("are found whatever their case, and cut for marking", () => {
    expect(findRows(splitRows("One\ntwo\nONE"), "one")).toEqual([0, 2]);
    expect(cutAtMatches("One one", "one")).toEqual(["", "One", " ", "one", ""]);
    expect(cutAtMatches("İx", "x")).toEqual(["İx"]);
  });
});
