import { describe, expect, it } from "vitest";
import { readCode, safeNext } from "./next";

describe("after the login", () => {
  it("you come back to where you were", () => {
    expect(safeNext("/runs?status=failed#L3")).toBe("/runs?status=failed#L3");
  });

  it("no address leads you to another server", () => {
    for (const next of [
      "https://evil.example",
      "//evil.example",
      "/\\evil.example",
      "/\t/evil.example",
      "javascript:alert(1)",
      undefined,
    ])
      expect(safeNext(next)).toBe("/");
  });

  it("the code of a one-time link is read from the fragment", () => {
    expect(readCode("#code=abc")).toBe("abc");
    expect(readCode("")).toBeNull();
  });
});
