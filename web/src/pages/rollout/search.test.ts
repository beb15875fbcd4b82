import { describe, expect, it } from "vitest";
import { readRolloutSearch, readShown, toggleKind, writeShown } from "./search";

describe("the address of a rollout", () => {
  it("shows everything unless it says what", () => {
    expect(writeShown(readShown(undefined))).toBeUndefined();
    expect([...readShown(["tools", "nonsense"])]).toEqual(["tools"]);
  });

  it("can hide everything", () => {
    const none = toggleKind(readShown(["tools"]), "tools");
    expect(writeShown(none)).toEqual(["none"]);
    expect(readShown(["none"]).size).toBe(0);
  });

  it("takes anything from anywhere", () => {
    expect(readRolloutSearch({ view: "sideways", show: ["judge", "judge"] })).toEqual({ show: ["judge"] });
  });
});
