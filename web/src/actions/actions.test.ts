import type { QueryClient } from "@tanstack/react-query";
import { describe, expect, it } from "vitest";
import { ApiError } from "#/api/client";
import type { SessionInfo } from "#/api/session";
import type { RunInfo } from "#/api/types";
import { actOnAll } from "./BulkActions";
import { readLimits } from "./ResumeDialog";
import { againHref, refuseDelete, refuseResume, refuseStop } from "./rights";

const session = {
  user: { name: "ada" },
  scopes: ["runs:read", "runs:write"],
  has_logins: true,
} as SessionInfo;
const run = (values: Partial<RunInfo> = {}) =>
  ({
    id: "run-1",
    kind: "hosted",
    status: "running",
    owner: "ada",
    environment: "ada/sums",
    may_change: true,
    progress: { planned: 4, settled: 2 },
    ...values,
  }) as RunInfo;

describe("who may do what to a run", () => {
  it("names the reason, the most general first", () => {
    expect(refuseStop(session, run())).toBeNull();
    expect(refuseStop(null, run())).toMatch(/Log in/);
    expect(refuseStop({ ...session, scopes: ["runs:read"] }, run())).toMatch(/runs:write/);
    expect(refuseStop(session, run({ may_change: false }))).toMatch(/Ask ada/);
    expect(refuseStop(session, run({ kind: "local" }))).toMatch(/elsewhere/);
    expect(refuseStop(session, run({ status: "stopping" }))).toMatch(/stopping already/);
    expect(refuseDelete(session, run())).toMatch(/Stop it first/);
    expect(refuseResume(session, run())).toMatch(/not ended/);
    expect(refuseResume(session, run({ status: "failed" }))).toBeNull();
    const done = run({ status: "finished", progress: { planned: 4, settled: 4 } as RunInfo["progress"] });
    expect(refuseResume(session, done)).toMatch(/nothing is left/);
  });

  it("repeats a run where its environment is on the server", () => {
    expect(againHref(run())).toBe("/e/ada/sums/run?from=run-1");
    expect(againHref(run({ environment: "sums" }))).toBeNull();
  });
});

describe("limits for a run that is resumed", () => {
  it("leaves empty ones as they were, and names what is wrong", () => {
    expect(readLimits("", "").value).toEqual({});
    expect(readLimits("90", "$2.5").value).toEqual({ timeout_minutes: 90, max_cost_usd: 2.5 });
    const { value, minutes, budget } = readLimits("0", "-1");
    expect([value, minutes === undefined, budget === undefined]).toEqual([null, false, false]);
    expect(readLimits("1.5", "").value).toBeNull();
  });
});

describe("many runs at once", () => {
  it("goes on after a refusal, and says which", async () => {
    const runs = [run(), run({ id: "run-2", name: "second" }), run({ id: "run-3" })];
    const result = await actOnAll({} as QueryClient, runs, async (_, id) => {
      if (id === "run-2") throw new ApiError(409, "not_ended", "run-2 is running; stop it first.");
    });
    expect(result.done).toEqual(["run-1", "run-3"]);
    expect(result.refused).toEqual([{ name: "second", message: "run-2 is running; stop it first." }]);
  });
});
