import { describe, expect, it } from "vitest";
import { buildCatalogueQuery, isFiltered, readCatalogueSearch, readSlug } from "./search";

describe("the address of the catalogue", () => {
  it("keeps what it understands and drops the rest", () => {
    const search = readCatalogueSearch({ q: "maze", tag: ["a", "b"], mine: "1", visibility: "x", sort: "x" });
    expect(search).toEqual({ q: "maze", tag: ["a", "b"], mine: true });
    expect(buildCatalogueQuery(search)).toEqual({ search: "maze", tag: ["a", "b"], mine: true });
    expect(isFiltered(readCatalogueSearch({ sort: "name" }))).toBe(false);
  });

  it("finds the environment in what was pasted", () => {
    expect(readSlug(" ada/sums ")).toEqual({ owner: "ada", name: "sums" });
    expect(readSlug("ada/sums@1.0")).toEqual({ owner: "ada", name: "sums@1.0" });
    expect(readSlug("https://proctor.example/e/ada/sums/readme")).toEqual({ owner: "ada", name: "sums" });
    for (const other of ["sums", "ada/", "Ada/Sums", "javascript:alert(1)/x", "a b/c", "//evil.example/x"])
      expect(readSlug(other)).toBeNull();
  });
});
