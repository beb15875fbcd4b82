/** Short names for the API's types. */
import type { components, paths } from "./schema";

type Schemas = components["schemas"];

export type CallBrief = Schemas["CallBrief"];
export type CompareQuery = Query<"/api/v1/compare">;
export type ComparedMeasure = Schemas["MeasureComparison"];
export type Comparison = Schemas["Comparison"];
export type ComparisonPage = Schemas["ComparisonPage"];
export type Cause = Schemas["Cause"];
export type CutText = Schemas["CutText"];
export type DiffPair = Schemas["DiffPair"];
export type Distribution = Schemas["Distribution"];
export type EventBrief = Schemas["EventBrief"];
export type EventContent = Schemas["EventContent"];
export type EventWindow = Schemas["EventWindow"];
export type FacetValue = Schemas["FacetValue"];
export type FailureGroup = Schemas["FailureGroup"];
export type FeedEvent = Schemas["FeedEvent"];
export type FileBrief = Schemas["FileBrief"];
export type ImagePart = Schemas["ImagePart"];
export type Interval = Schemas["Interval"];
export type LogEntry = Schemas["LogEntry"];
export type LogPage = Schemas["LogPage"];
export type MeanEstimate = Schemas["MeanEstimate"];
export type Outcome = RolloutEntry["outcome"];
export type RolloutDiff = Schemas["RolloutDiff"];
export type RolloutEntry = Schemas["RolloutEntry"];
export type RolloutPage = Schemas["RolloutPage"];
export type RolloutView = Schemas["RolloutView"];
export type RowError = Schemas["RowError"];
export type RowTiming = Schemas["RowTiming"];
export type RunChange = Schemas["RunChange"];
export type RunFacets = Schemas["RunFacets"];
export type RunInfo = Schemas["RunInfo"];
export type RunPage = Schemas["RunPage"];
export type RunScore = Schemas["RunScore"];
export type RunStatus = RunInfo["status"];
export type SearchHit = Schemas["SearchHit"];
export type SentCall = Schemas["SentCall"];
export type Subscore = Schemas["Subscore"];
export type ScatterPoint = Schemas["ScatterPoint"];
export type SuiteCell = Schemas["SuiteCell"];
export type SuiteInfo = Schemas["SuiteInfo"];
export type Summary = Schemas["Summary"];
export type TaskComparison = Schemas["TaskComparison"];
export type TaskSide = Schemas["TaskSide"];
export type TaskGroup = Schemas["TaskGroup"];
export type TaskPage = Schemas["TaskPage"];
export type ToolBrief = Schemas["ToolBrief"];
export type ToolContent = Schemas["ToolContent"];
export type Usage = Schemas["Usage"];

type Query<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: infer Q } } }
  ? NonNullable<Q>
  : never;

export type RunListQuery = Query<"/api/v1/runs">;
export type RunSort = NonNullable<RunListQuery["sort"]>;
export type RolloutQuery = Query<"/api/v1/runs/{run_id}/rollouts">;
export type TaskQuery = Query<"/api/v1/runs/{run_id}/tasks">;
export type DistributionQuery = Query<"/api/v1/runs/{run_id}/distribution">;
export type LogQuery = Query<"/api/v1/runs/{run_id}/log">;
export type EventQuery = Query<"/api/v1/runs/{run_id}/rollouts/{key}/{number}/events">;
