/** Who may change a run, and the sentence for those who may not. */
import { useQuery } from "@tanstack/react-query";
import { isActive } from "#/api/runs";
import { type SessionInfo, sessionQuery } from "#/api/session";
import type { RunInfo } from "#/api/types";
import { actionWords as words } from "./words";

const WRITE = "runs:write";

/** Folders on a disk have no people, and nothing to do with them. */
export function useSession(): SessionInfo | null {
  return useQuery({ ...sessionQuery, meta: { quiet: true } }).data ?? null;
}

/** Why this person may not change runs at all; null if nothing stands in the way. */
export function refuseAll(session: SessionInfo | null): string | null {
  if (!session?.user) return words.logIn;
  return session.scopes.includes(WRITE) ? null : words.scope;
}

export const refuseChange = (session: SessionInfo | null, run: RunInfo): string | null =>
  refuseAll(session) ?? (run.may_change ? null : words.readOnly(run.owner));

export function refuseStop(session: SessionInfo | null, run: RunInfo): string | null {
  const refused = refuseChange(session, run);
  if (refused) return refused;
  if (run.kind !== "hosted") return words.elsewhere;
  if (run.status === "stopping") return words.stop.stopping;
  return isActive(run.status) ? null : words.stop.ended;
}

export function refuseResume(session: SessionInfo | null, run: RunInfo): string | null {
  const refused = refuseChange(session, run);
  if (refused) return refused;
  if (run.kind !== "hosted") return words.elsewhere;
  if (isActive(run.status)) return words.resume.notEnded;
  return countLeft(run) === 0 ? words.resume.nothingLeft : null;
}

export function refuseDelete(session: SessionInfo | null, run: RunInfo): string | null {
  const refused = refuseChange(session, run);
  if (refused) return refused;
  return run.kind === "hosted" && isActive(run.status) ? words.remove.notEnded : null;
}

/** How many rollouts are left to play; null if that is unknown. */
export const countLeft = ({ progress }: RunInfo): number | null =>
  progress.planned === null ? null : Math.max(0, progress.planned - progress.settled);

/** The page that starts a run like this one; null where its environment is not on the server. */
export function againHref(run: RunInfo): string | null {
  const [owner, name, ...rest] = run.environment.split("/");
  if (run.kind !== "hosted" || !owner || !name || rest.length > 0) return null;
  return `/e/${encodeURIComponent(owner)}/${encodeURIComponent(name)}/run?from=${encodeURIComponent(run.id)}`;
}
