import { describe, expect, it } from "vitest";
import { indentJson } from "./json";

describe("JSON of a tool", () => {
  it("is indented", () => {
    expect(indentJson('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}');
  });

  it("stays as it is if it is something else, broken, or a trap", () => {
    expect(indentJson("1.00")).toBeNull();
    expect(indentJson('{"a":')).toBeNull();
    expect(indentJson("[".repeat(10_000) + "]".repeat(10_000))).toBeNull();
  });
});
