import { describe, expect, it } from "vitest";
import { compact, parseSearch, readChoices, readFlag, readNumber, stringifySearch } from "./search";

describe("search parameters", () => {
  it("survive the way to the address and back", () => {
    const search = { status: ["running", "failed"], q: "a b&c", n: 3 };
    const text = stringifySearch(search);
    expect(text).toBe("?status=running&status=failed&q=a+b%26c&n=3");
    expect(parseSearch(text)).toEqual({ status: ["running", "failed"], q: "a b&c", n: "3" });
  });

  it("that are nonsense are as good as absent", () => {
    expect(readChoices(["no", "running"], ["running", "failed"])).toEqual(["running"]);
    expect(readChoices("<script>", ["running"])).toBeUndefined();
    expect(readNumber("12px")).toBeUndefined();
    expect(readFlag("perhaps")).toBeUndefined();
    expect(compact({ q: undefined, n: 1 })).toEqual({ n: 1 });
  });
});
