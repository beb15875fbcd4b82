/** The columns of the list of runs, and those that are shown unless the reader chooses. */
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

export const USUAL_COLUMNS: readonly ColumnId[] = [
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
  "created",
];
