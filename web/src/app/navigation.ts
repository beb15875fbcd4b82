/** The pages of the main navigation, with the key that follows `g`. */
import type { IconName } from "#/design/Icon";
import { words } from "#/words";

export const NAVIGATION = [
  { to: "/", label: words.nav.home, key: "h", icon: "monitor" },
  { to: "/runs", label: words.nav.runs, key: "r", icon: "list" },
  { to: "/compare", label: words.nav.compare, key: "c", icon: "compare" },
  { to: "/suites", label: words.nav.suites, key: "s", icon: "columns" },
] as const satisfies readonly { to: string; label: string; key: string; icon: IconName }[];
