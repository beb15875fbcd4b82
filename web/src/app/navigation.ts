/** The pages of the main navigation, with the key that follows `g`. */
import { useQuery } from "@tanstack/react-query";
import { sessionQuery } from "#/api/session";
import type { IconName } from "#/design/Icon";
import { words } from "#/words";

type NavigationItem = { to: string; label: string; key: string; icon: IconName; onServer?: true };

const NAVIGATION = [
  { to: "/", label: words.nav.home, key: "h", icon: "monitor" },
  { to: "/environments", label: words.nav.environments, key: "e", icon: "box", onServer: true },
  { to: "/runs", label: words.nav.runs, key: "r", icon: "list" },
  { to: "/compare", label: words.nav.compare, key: "c", icon: "compare" },
  { to: "/suites", label: words.nav.suites, key: "s", icon: "columns" },
  { to: "/datasets", label: words.nav.datasets, key: "d", icon: "list", onServer: true },
  { to: "/sources", label: words.nav.sources, key: "o", icon: "link", onServer: true },
] as const satisfies readonly NavigationItem[];

/** Run folders have nothing but runs: the other pages need a server. */
export function useNavigation(): readonly (typeof NAVIGATION)[number][] {
  const { data: session } = useQuery({ ...sessionQuery, meta: { quiet: true } });
  return NAVIGATION.filter((item) => !("onServer" in item) || session?.has_logins);
}
