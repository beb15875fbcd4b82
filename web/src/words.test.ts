import { describe, expect, it } from "vitest";
import { readCause } from "./words";

const cause = (message: string) => ({ code: "install_failed" as const, message, next_step: "" });

describe("why a run ended", () => {
  it("is not said twice", () => {
    expect(readCause(cause("The environment could not be installed: no wheel of zzz."))).toEqual({
      title: "The environment could not be installed",
      message: "No wheel of zzz.",
    });
  });

  it("is the message as it is otherwise", () => {
    expect(readCause(cause("pip ended with 1.")).message).toBe("pip ended with 1.");
  });
});
