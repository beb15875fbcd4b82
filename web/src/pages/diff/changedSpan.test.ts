import { describe, expect, it } from "vitest";
import { findChangedSpans } from "./changedSpan";

const cut = (a: string, b: string) => {
  const found = findChangedSpans(a, b);
  return found && [a.slice(found.a.from, found.a.to), b.slice(found.b.from, found.b.to)];
};

describe("the changed part of two texts", () => {
  it("is the words between what they share", () => {
    expect(cut("I buy two apples.", "I buy twelve apples.")).toEqual(["two", "twelve"]);
    expect(cut("the answer is 12", "the answer is 13, I think")).toEqual(["12", "13, I think"]);
  });

  it("may be missing on one side, or be everything", () => {
    expect(cut("yes", "yes, sir")).toEqual(["yes", "yes, sir"]);
    expect(cut("a", "b")).toEqual(["a", "b"]);
    expect(cut("same", "same")).toBeNull();
  });
});
