import { describe, expect, it } from "vitest";
import type { RunInfo } from "#/api/types";
import { groupByVersion, keepNewest, listContenders, nameVersion } from "./history";

const run = (
  id: string,
  version: string | null,
  model: string,
  created_at: number,
  mean: number | null = 0.5,
) =>
  ({
    id,
    version,
    model,
    created_at,
    content_hash: null,
    agent: null,
    score: { mean },
  }) as unknown as RunInfo;

const runs = [
  run("c", "2", "weak", 3),
  run("a", "1", "weak", 1),
  run("b", "1", "strong", 2),
  run("d", "1", "weak", 4),
  run("e", "2", "strong", 5, null),
];

describe("the history of an environment", () => {
  it("has versions in the order of their first run, and models in one order", () => {
    const groups = groupByVersion(runs, listContenders(runs));
    expect(groups.map((group) => [group.label, group.runs.map(({ id }) => id)])).toEqual([
      ["1", ["b", "a", "d"]],
      ["2", ["c"]],
    ]);
  });

  it("keeps the newest scored run of each version and model", () => {
    expect(
      keepNewest(runs)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(["b", "c", "d"]);
  });

  it("names the content where there is no version", () => {
    const local = { ...run("f", null, "weak", 6), content_hash: "sha256:0123456789abcdef" };
    expect(nameVersion(local)).toBe("content 01234567");
    expect(nameVersion(run("g", null, "weak", 7))).toBe("no version");
  });
});
