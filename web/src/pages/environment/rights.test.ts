import { describe, expect, it } from "vitest";
import type { EnvironmentInfo } from "#/api/types";
import { type Shown, splitVersion } from "./context";
import { explainFork, explainRole, explainRun } from "./rights";

const shown = (values: Partial<EnvironmentInfo> = {}, user: string | null = "rita"): Shown => ({
  environment: {
    owner: "ada",
    name: "sums",
    role: "read",
    run_policy: "readers",
    ...values,
  } as EnvironmentInfo,
  version: "1.0",
  user,
  teams: [],
});

describe("what somebody may do with an environment", () => {
  it("says which role is missing and who could give it", () => {
    expect(explainRole(shown(), "owner")).toBe(
      "This needs the role “owner”; yours is “read”. ada can change that.",
    );
    expect(explainRole(shown({ role: null }), "write")).toContain("yours is “read”");
    expect(explainRole(shown({ role: "owner" }), "write")).toBeNull();
    expect(explainRole(shown({ role: null }, null), "write")).toBe("Log in first.");
  });

  it("lets readers run it unless its policy says otherwise", () => {
    expect(explainRun(shown())).toBeNull();
    expect(explainRun(shown({ run_policy: "writers" }))).toContain("ada can give you the role “write”");
    expect(explainRun(shown({ run_policy: "writers", role: "write" }))).toBeNull();
    expect(explainRun({ ...shown(), version: null })).toContain("no version");
    expect(explainFork(shown({}, null))).toBe("Log in first.");
  });

  it("reads a version from the address", () => {
    expect(splitVersion("sums")).toEqual({ name: "sums", version: null });
    expect(splitVersion("sums@1.0")).toEqual({ name: "sums", version: "1.0" });
    expect(splitVersion("sums@")).toEqual({ name: "sums", version: null });
  });
});
