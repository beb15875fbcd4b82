/** The parts of a run, in the order of their tabs. */
import { words } from "#/words";

export const FAILURES = "/runs/$runId/failures";
/** Where there are people. */
export const COMMENTS = "/runs/$runId/comments";

export const RUN_TABS = [
  { to: "/runs/$runId", label: words.run.tabs.overview, exact: true },
  { to: "/runs/$runId/samples", label: words.run.tabs.samples, exact: false },
  { to: "/runs/$runId/search", label: words.run.tabs.search, exact: false },
  { to: "/runs/$runId/logs", label: words.run.tabs.logs, exact: false },
  { to: FAILURES, label: words.run.tabs.failures, exact: false },
  { to: "/runs/$runId/decide", label: words.run.tabs.decide, exact: false },
  { to: "/runs/$runId/labels", label: words.run.tabs.labels, exact: false },
  { to: "/runs/$runId/config", label: words.run.tabs.config, exact: false },
  { to: COMMENTS, label: words.run.tabs.comments, exact: false },
] as const;
