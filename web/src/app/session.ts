/**
 * What happens when a session ends while somebody works: the page stays, with all that was typed, below a
 * dialog to log in again. Pages that were opened without a session lead to the login page instead.
 */
import type { QueryClient } from "@tanstack/react-query";
import type { ApiError } from "#/api/client";
import type { SessionInfo } from "#/api/session";
import { restartFeed } from "./feed";
import { createStore } from "./store";

/** Who was logged in when their session ended; null while none has. */
export const endedSession = createStore<string | null>(null);

let lastUser: string | null = null;
/** Whether this page was opened with a session that had ended before. */
let openedTooLate = false;
const otherTabs = new BroadcastChannel("proctor-session");

/** Called with every answer about the session. */
export function noteSession(session: SessionInfo | null): void {
  openedTooLate = session?.is_over ?? false;
  if (session?.user) lastUser = session.user.name;
  else if (lastUser !== null) endedSession.set(() => lastUser);
}

/** Called with a refusal for lack of a session; false if nobody was logged in on this page. */
export function noteRefusal(): boolean {
  if (lastUser === null) return false;
  endedSession.set(() => lastUser);
  return true;
}

/** A refusal names the end of a session only until its cookie is removed, so both have to be asked. */
export const hasSessionEnded = (refusal: ApiError): boolean =>
  openedTooLate || refusal.code !== "unauthenticated";

/** Called before somebody logs out by themselves. */
export function forgetSession(): void {
  lastUser = null;
  endedSession.set(() => null);
}

/** Goes on as before, in every tab; a page of somebody else starts anew. */
export async function resumeSession(client: QueryClient, user: string): Promise<void> {
  otherTabs.postMessage(user);
  await goOn(client, user);
}

/** Hears of logins in other tabs. */
export function followSession(client: QueryClient): void {
  otherTabs.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (typeof data === "string") void goOn(client, data);
  };
}

async function goOn(client: QueryClient, user: string): Promise<void> {
  if (lastUser !== null && lastUser !== user) return location.reload();
  lastUser = user;
  endedSession.set(() => null);
  restartFeed();
  await client.invalidateQueries();
}
