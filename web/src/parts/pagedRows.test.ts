import { describe, expect, it } from "vitest";
import { findPages } from "./pagedRows";
import { findStep } from "./tableKeys";

describe("a long list", () => {
  it("loads the pages in sight and the next one, and none beyond its end", () => {
    expect(findPages(0, 0, 100, undefined)).toEqual([0]);
    expect(findPages(0, 40, 100, 100_000)).toEqual([0, 1]);
    expect(findPages(95, 130, 100, 100_000)).toEqual([0, 1, 2]);
    expect(findPages(99_950, 99_999, 100, 100_000)).toEqual([999]);
    expect(findPages(0, 0, 100, 0)).toEqual([0]);
  });

  it("moves by row, by page and to its ends", () => {
    expect(["ArrowDown", "PageUp", "End", "a"].map((key) => findStep(key, 20, 500))).toEqual([
      1,
      -20,
      500,
      null,
    ]);
  });
});
