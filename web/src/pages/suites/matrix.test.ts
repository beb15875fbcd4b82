import { describe, expect, it } from "vitest";
import type { SuiteInfo } from "#/api/types";
import { chooseAxes, findCells } from "./matrix";

const suite = {
  id: "s",
  name: "",
  created_at: 0,
  axes: { model: ["weak", "strong"], temperature: ["0", "1"], agent: ["a", "b"] },
  cells: [
    { at: { model: "weak", temperature: "0", agent: "a" }, run: { id: "1" } },
    { at: { model: "weak", temperature: "0", agent: "b" }, run: { id: "2" } },
    { at: { model: "strong", temperature: "1", agent: "a" }, run: { id: "3" } },
  ],
} as unknown as SuiteInfo;

describe("the matrix of a sweep", () => {
  it("has the first two axes unless others are asked for", () => {
    expect(chooseAxes(suite)).toEqual({ rows: "model", columns: "temperature", others: ["agent"] });
    expect(chooseAxes(suite, { rows: "agent" })).toMatchObject({ rows: "agent", columns: "model" });
    expect(chooseAxes(suite, { columns: "model" })).toMatchObject({ rows: "temperature", columns: "model" });
    expect(chooseAxes(suite, { rows: "nonsense", columns: "model" }).rows).toBe("temperature");
  });

  it("has a single column where one thing was varied, and a single cell where nothing was", () => {
    expect(chooseAxes({ ...suite, axes: { model: ["a", "b"] } })).toEqual({
      rows: "model",
      columns: null,
      others: [],
    });
    expect(chooseAxes({ ...suite, axes: {} })).toEqual({ rows: null, columns: null, others: [] });
  });

  it("has every run of a place, and none where nothing was played", () => {
    const axes = chooseAxes(suite);
    expect(findCells(suite, axes, "weak", "0").map((cell) => cell.run.id)).toEqual(["1", "2"]);
    expect(findCells(suite, axes, "weak", "1")).toEqual([]);
  });
});
