/** The columns of the list of rollouts, and those that are shown unless the reader chooses. */

export const COLUMN_IDS = [
  "outcome",
  "task",
  "reward",
  "number",
  "preview",
  "turns",
  "tokens",
  "seconds",
  "cost",
  "error",
  "stop",
  "attempts",
  "env",
  "started",
] as const;

export type ColumnId = (typeof COLUMN_IDS)[number];

const METRIC = "metric:";
const MOST_METRICS = 2;

export const metricColumn = (name: string): string => METRIC + name;
export const metricOf = (column: string): string | undefined =>
  column.startsWith(METRIC) ? column.slice(METRIC.length) : undefined;

export const listColumnIds = (metrics: readonly string[]): string[] => [
  ...COLUMN_IDS.slice(0, 4),
  ...metrics.map(metricColumn),
  ...COLUMN_IDS.slice(4),
];

/** What says something about these rollouts: costs where there are any, environments where there are several. */
export function chooseColumns(metrics: readonly string[], has: { cost: boolean; env: boolean }): string[] {
  const usual: ColumnId[] = ["outcome", "task", "reward", "number", "preview", "turns", "tokens", "seconds"];
  const shown = [
    ...usual,
    ...metrics.slice(0, MOST_METRICS).map(metricColumn),
    ...(has.cost ? ["cost"] : []),
    ...(has.env ? ["env"] : []),
  ];
  return listColumnIds(metrics).filter((id) => shown.includes(id));
}
