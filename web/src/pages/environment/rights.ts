/** What stands in the way of somebody, as a sentence that says who could grant it; null if nothing does. */
import type { EnvironmentInfo } from "#/api/types";
import type { Shown } from "./context";
import { text } from "./words";

type Role = NonNullable<EnvironmentInfo["role"]>;

const RANK: Record<Role, number> = { read: 1, write: 2, owner: 3 };

const hasRole = (environment: EnvironmentInfo, needed: Role): boolean =>
  RANK[environment.role ?? "read"] >= RANK[needed];

export function explainRole({ environment, user }: Shown, needed: Role): string | null {
  if (hasRole(environment, needed)) return null;
  if (user === null) return text.reasons.logIn;
  return text.reasons.role(needed, environment.role ?? "read", environment.owner);
}

export function explainRun({ environment, version, user }: Shown): string | null {
  if (user === null) return text.reasons.logIn;
  if (version === null) return text.reasons.noVersion;
  if (environment.run_policy === "writers" && !hasRole(environment, "write"))
    return text.reasons.runPolicy(environment.owner);
  return null;
}

export function explainFork({ version, user }: Shown): string | null {
  if (user === null) return text.reasons.logIn;
  return version === null ? text.reasons.noVersion : null;
}
