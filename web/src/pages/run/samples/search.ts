/** Which rollouts of a run are shown, how, and in which order, as it stands in the address. */
import type { Outcome, RolloutQuery, TaskQuery } from "#/api/types";
import {
  compact,
  type RawSearch,
  readChoice,
  readChoices,
  readFlag,
  readList,
  readNumber,
  readText,
} from "#/app/search";

export const OUTCOMES = [
  "scored",
  "truncated",
  "excluded",
  "model_error",
  "environment_error",
  "grader_error",
  "agent_error",
  "timeout",
  "cancelled",
] as const satisfies readonly Outcome[];

export type RolloutSort = NonNullable<RolloutQuery["sort"]>;
export type TaskSort = NonNullable<TaskQuery["sort"]>;

const ROLLOUT_SORTS = [
  "arrival",
  "task",
  "number",
  "outcome",
  "reward",
  "metric",
  "seconds",
  "tokens",
  "turns",
  "cost",
  "error",
] as const satisfies readonly RolloutSort[];
const TASK_SORTS = [
  "task",
  "mean",
  "spread",
  "scored",
  "failed",
  "lowest",
  "highest",
] as const satisfies readonly TaskSort[];

export const RANGES = ["reward", "seconds", "tokens", "metric"] as const;
export type RangeName = (typeof RANGES)[number];

export const readSampleSearch = (search: RawSearch) =>
  compact({
    view: readChoice(search.view, ["tasks"]),
    q: readText(search.q),
    outcome: readChoices(search.outcome, OUTCOMES),
    error_kind: readList(search.error_kind),
    stop_condition: readList(search.stop_condition),
    env: readList(search.env),
    task: readText(search.task),
    passed: readChoice(search.passed, ["true", "false"]),
    metric: readText(search.metric),
    reward_min: readNumber(search.reward_min),
    reward_max: readNumber(search.reward_max),
    seconds_min: readNumber(search.seconds_min),
    seconds_max: readNumber(search.seconds_max),
    tokens_min: readNumber(search.tokens_min),
    tokens_max: readNumber(search.tokens_max),
    metric_min: readNumber(search.metric_min),
    metric_max: readNumber(search.metric_max),
    sort: readChoice(search.sort, [...ROLLOUT_SORTS, ...TASK_SORTS]),
    descending: readFlag(search.descending),
    cols: readList(search.cols),
  });

export type SampleSearch = ReturnType<typeof readSampleSearch>;

/** What the server is asked for a list of rollouts. An address may lack the metric that it sorts by. */
export function buildRolloutQuery(search: SampleSearch): RolloutQuery {
  const { view: _, cols: __, passed, sort, descending, metric, metric_min, metric_max, ...filters } = search;
  const known = ROLLOUT_SORTS.find((each) => each === sort && (each !== "metric" || metric !== undefined));
  return compact({
    ...filters,
    ...(metric === undefined ? {} : { metric, metric_min, metric_max }),
    passed: passed === undefined ? undefined : passed === "true",
    tokens_min: roundUp(filters.tokens_min),
    tokens_max: roundUp(filters.tokens_max),
    sort: known ?? "task",
    descending: (known !== undefined && descending) || undefined,
  });
}

export function buildTaskQuery({ q, env, sort, descending }: SampleSearch): TaskQuery {
  const known = TASK_SORTS.find((each) => each === sort);
  return compact({ q, env, sort: known ?? "task", descending: (known && descending) || undefined });
}

const roundUp = (value: number | undefined) => (value === undefined ? undefined : Math.ceil(value));

const FILTERS = ["q", "outcome", "error_kind", "stop_condition", "env", "task", "passed"] as const;
const LIMITS = RANGES.flatMap((name) => [`${name}_min`, `${name}_max`] as const);

export const NO_FILTERS = Object.fromEntries([...FILTERS, ...LIMITS].map((name) => [name, undefined]));

export const hasRange = (search: SampleSearch): boolean => LIMITS.some((name) => search[name] !== undefined);

export const isFiltered = (search: SampleSearch): boolean =>
  hasRange(search) || FILTERS.some((name) => search[name] !== undefined);
