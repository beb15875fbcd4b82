/** Who is logged in: on these pages somebody always is. */
import { useQuery } from "@tanstack/react-query";
import { sessionQuery } from "#/api/session";

export function useAccount() {
  const { data } = useQuery(sessionQuery);
  const scopes = data?.scopes ?? [];
  return {
    name: data?.user?.name ?? "",
    isAdmin: data?.user?.is_admin ?? false,
    teams: data?.teams ?? [],
    scopes,
    /** Why the session may not do what needs a scope; null if it may. */
    reason: (scope: string, sentence: string): string | null => (scopes.includes(scope) ? null : sentence),
  };
}
