/** The lock file installs on every platform and names no registry. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

type Locked = { integrity?: string; resolved?: string; optionalDependencies?: Record<string, string> };
const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as { packages: Record<string, Locked> };
const packages = Object.entries(lock.packages).filter(([path]) => path !== "");

describe("package-lock.json", () => {
  it("has every optional package of every platform", () => {
    const names = new Set(packages.map(([path]) => path.split("node_modules/").at(-1)));
    const missing = packages.flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies)
        .filter((name) => !names.has(name))
        .map((name) => `${name} of ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it("has no address and only packages with a hash", () => {
    expect(packages.filter(([, { resolved }]) => resolved).map(([path]) => path)).toEqual([]);
    expect(packages.filter(([, { integrity }]) => !integrity).map(([path]) => path)).toEqual([]);
  });
});
