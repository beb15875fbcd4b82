import { beforeEach, describe, expect, it } from "vitest";
import { ApiError } from "#/api/client";
import type { SessionInfo } from "#/api/session";
import { endedSession, forgetSession, hasSessionEnded, noteRefusal, noteSession } from "./session";

const nobody: SessionInfo = {
  user: null,
  is_over: false,
  teams: [],
  scopes: [],
  expires_at: null,
  server_version: "1",
  has_logins: true,
};
const ada = { ...nobody, user: { name: "ada", is_admin: false, created_at: 0 } };
const refuse = (code: string) => new ApiError(401, code, "Log in.");

describe("a refusal for lack of a session", () => {
  beforeEach(() => {
    noteSession(nobody);
    forgetSession();
  });

  it("names the end of a session that the server knows", () => {
    expect(hasSessionEnded(refuse("session_over"))).toBe(true);
    expect(hasSessionEnded(refuse("unauthenticated"))).toBe(false);
  });

  it("names it also if the answer about the session came first and removed the cookie", () => {
    noteSession({ ...nobody, is_over: true });
    expect(hasSessionEnded(refuse("unauthenticated"))).toBe(true);
    noteSession(ada);
    expect(hasSessionEnded(refuse("unauthenticated"))).toBe(false);
  });

  it("leaves the page where it is if somebody was logged in on it", () => {
    expect(noteRefusal()).toBe(false);
    noteSession(ada);
    expect(noteRefusal()).toBe(true);
    expect(endedSession.get()).toBe("ada");
  });
});
