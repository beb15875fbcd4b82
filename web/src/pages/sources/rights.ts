/** Why somebody may not do something with sources; null if they may. */
import type { SessionInfo } from "#/api/session";
import { text } from "./words";

export function refuse(session: SessionInfo | null | undefined, scope: string): string | null {
  if (!session?.user) return text.notLoggedIn;
  return session.scopes.includes(scope) ? null : text.noScope(scope);
}
