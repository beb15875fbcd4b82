/** Why somebody may not label a run, if they may not: only those who may change it do. */
import type { SessionInfo } from "#/api/session";
import type { RunInfo } from "#/api/types";
import { labelWords } from "./words";

const text = labelWords.label;

export function findRefusal(
  run: Pick<RunInfo, "owner" | "team">,
  session: Pick<SessionInfo, "user" | "teams"> | null,
): string | null {
  const user = session?.user;
  if (!user) return text.refusedNobody;
  const isTeams = session.teams.some(({ team }) => team === run.team);
  return user.is_admin || run.owner === user.name || isTeams ? null : text.refusedReader(run.owner);
}
