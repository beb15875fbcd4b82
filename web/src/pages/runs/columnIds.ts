/** The columns of the list of runs, and those that are shown unless the reader chooses. */
import type { RunInfo } from "#/api/types";

export const COLUMN_IDS = [
  "status",
  "name",
  "environment",
  "model",
  "agent",
  "score",
  "coverage",
  "progress",
  "cost",
  "tokens",
  "duration",
  "owner",
  "kind",
  "tags",
  "created",
] as const;

export type ColumnId = (typeof COLUMN_IDS)[number];

const USUAL_COLUMNS: readonly ColumnId[] = [
  "status",
  "name",
  "model",
  "agent",
  "score",
  "progress",
  "cost",
  "duration",
  "owner",
  "kind",
  "tags",
  "created",
];

/** Without the columns that would be empty: folders on a disk have no owner, and most runs no agent and no tags. */
export function chooseColumns(runs: readonly RunInfo[]): ColumnId[] {
  const hasOwner = runs.some((run) => run.owner || run.team);
  const hasAgent = runs.some((run) => run.agent);
  const hasTags = runs.some((run) => run.tags.length > 0);
  const isEmpty: Partial<Record<ColumnId, boolean>> = {
    owner: !hasOwner,
    kind: !hasOwner,
    agent: !hasAgent,
    tags: !hasTags,
  };
  return USUAL_COLUMNS.filter((id) => !isEmpty[id]);
}
