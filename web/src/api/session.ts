/** Who is logged in. Over local folders nobody is, and nobody has to be. */
import { queryOptions } from "@tanstack/react-query";
import { ApiError, readProblem } from "./client";

export type SessionInfo = {
  user: { name: string; is_admin: boolean; created_at: number } | null;
  is_over: boolean;
  teams: { team: string; role: string }[];
  scopes: string[];
  expires_at: number | null;
  server_version: string;
  has_logins: boolean;
};

const PATH = "/api/v1/session";

async function request(method: string, body?: unknown): Promise<SessionInfo | null> {
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  let response: Response;
  try {
    response = await fetch(PATH, { method, headers, ...sent, credentials: "same-origin" });
  } catch {
    throw new ApiError(0, "unreachable", "The server does not answer.");
  }
  const text = await response.text();
  const data: unknown =
    text && response.headers.get("content-type")?.includes("json") ? JSON.parse(text) : null;
  if (!response.ok) throw readProblem(response.status, data);
  return data as SessionInfo | null;
}

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => request("GET"),
  staleTime: 60_000,
});

export const logIn = (given: { token: string } | { code: string }) => request("POST", given);
export const logOut = () => request("DELETE");
