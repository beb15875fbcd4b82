/** The parts of a run, in the order of their tabs. */
import { words } from "#/words";

export const FAILURES = "/runs/$runId/failures";

export const RUN_TABS = [
  { to: "/runs/$runId", label: words.run.tabs.overview, exact: true },
  { to: "/runs/$runId/samples", label: words.run.tabs.samples, exact: false },
  { to: "/runs/$runId/logs", label: words.run.tabs.logs, exact: false },
  { to: FAILURES, label: words.run.tabs.failures, exact: false },
  { to: "/runs/$runId/config", label: words.run.tabs.config, exact: false },
] as const;
