/** The parts of a run, in the order of their tabs. */
import { words } from "#/words";

export const RUN_TABS = [
  { to: "/runs/$runId", label: words.run.tabs.overview, exact: true },
  { to: "/runs/$runId/config", label: words.run.tabs.config, exact: false },
] as const;
