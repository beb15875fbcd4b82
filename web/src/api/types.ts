/** Short names for the API's types. */
import type { components, paths } from "./schema";

type Schemas = components["schemas"];

export type ArgumentInfo = Schemas["ArgumentInfo"];
export type AuditEntry = Schemas["AuditEntry"];
export type AuditQuery = Query<"/api/v1/audit">;
export type Balance = Schemas["Balance"];
export type BrowserLogin = Schemas["BrowserLogin"];
export type CallBrief = Schemas["CallBrief"];
export type CompareQuery = Query<"/api/v1/compare">;
export type ComparedMeasure = Schemas["MeasureComparison"];
export type Comparison = Schemas["Comparison"];
export type ComparisonPage = Schemas["ComparisonPage"];
export type Cause = Schemas["Cause"];
export type Collaborator = Schemas["Collaborator"];
export type CutText = Schemas["CutText"];
export type DiffPair = Schemas["DiffPair"];
export type BlindRollout = Schemas["BlindRollout"];
export type Distribution = Schemas["Distribution"];
export type EnvironmentFacets = Schemas["EnvironmentFacets"];
export type EnvironmentInfo = Schemas["EnvironmentInfo"];
export type EnvironmentListQuery = Query<"/api/v1/environments">;
export type EnvironmentSort = NonNullable<EnvironmentListQuery["sort"]>;
export type EnvironmentVersion = Schemas["Version"];
export type Estimate = Schemas["Estimate"];
export type EventBrief = Schemas["EventBrief"];
export type EventContent = Schemas["EventContent"];
export type EventWindow = Schemas["EventWindow"];
export type EvaluationDesign = Schemas["EvaluationDesign"];
export type FacetValue = Schemas["FacetValue"];
export type FailureGroup = Schemas["FailureGroup"];
export type FeedEvent = Schemas["FeedEvent"];
export type FileBrief = Schemas["FileBrief"];
export type HostInfo = Schemas["HostInfo"];
export type GateResult = Schemas["GateResult"];
export type ImagePart = Schemas["ImagePart"];
export type Interval = Schemas["Interval"];
export type JudgeReport = Schemas["JudgeReport"];
export type LabellingQueue = Schemas["LabellingQueue"];
export type LogEntry = Schemas["LogEntry"];
export type LogPage = Schemas["LogPage"];
export type Member = Schemas["Member"];
export type Membership = Schemas["Membership"];
export type ModelInfo = Schemas["ModelInfo"];
export type ModelPrice = Schemas["ModelPrice"];
export type MeanEstimate = Schemas["MeanEstimate"];
export type NewRun = Schemas["NewRun"];
export type Outcome = RolloutEntry["outcome"];
export type QueueItem = Schemas["QueueItem"];
export type NewLabel = Schemas["NewLabel"];
export type QueuedRollout = Schemas["QueuedRollout"];
export type RolloutDiff = Schemas["RolloutDiff"];
export type RolloutEntry = Schemas["RolloutEntry"];
export type RolloutPage = Schemas["RolloutPage"];
export type RolloutView = Schemas["RolloutView"];
export type RowError = Schemas["RowError"];
export type RowTiming = Schemas["RowTiming"];
export type RunComment = Schemas["RunComment"];
export type RunChange = Schemas["RunChange"];
export type RunCheck = Schemas["RunCheck"];
export type RunEdit = Schemas["RunEdit"];
export type RunFacets = Schemas["RunFacets"];
export type RunHistory = Schemas["RunHistory"];
export type RunInfo = Schemas["RunInfo"];
export type RunPage = Schemas["RunPage"];
export type RunSecret = Schemas["RunSecret"];
export type RunProblem = Schemas["RunProblem"];
export type RunScore = Schemas["RunScore"];
export type RunSharing = Schemas["RunSharing"];
export type RunVisibility = RunInfo["visibility"];
export type RunStatus = RunInfo["status"];
export type Scope = Schemas["Token"]["scopes"][number];
export type SearchHit = Schemas["SearchHit"];
export type Secret = Schemas["Secret"];
export type SentCall = Schemas["SentCall"];
export type SourceInfo = Schemas["SourceInfo"];
export type Storage = Schemas["Storage"];
export type Subscore = Schemas["Subscore"];
export type ScatterPoint = Schemas["ScatterPoint"];
export type SuiteCell = Schemas["SuiteCell"];
export type SuiteInfo = Schemas["SuiteInfo"];
export type Summary = Schemas["Summary"];
export type TaskComparison = Schemas["TaskComparison"];
export type TaskSide = Schemas["TaskSide"];
export type TaskGroup = Schemas["TaskGroup"];
export type TaskPage = Schemas["TaskPage"];
export type TaskInfo = Schemas["TaskInfo"];
export type Token = Schemas["Token"];
export type ToolBrief = Schemas["ToolBrief"];
export type ToolContent = Schemas["ToolContent"];
export type Version = Schemas["Version"];
export type VersionDetails = Whole<Schemas["VersionDetails"]>;
export type Usage = Schemas["Usage"];
export type UsageQuery = Query<"/api/v1/usage">;
export type UsageTotal = Schemas["UsageTotal"];
export type User = Schemas["User"];

type Query<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: infer Q } } }
  ? NonNullable<Q>
  : never;

export type RunListQuery = Query<"/api/v1/runs">;
export type RunSort = NonNullable<RunListQuery["sort"]>;
export type RolloutQuery = Query<"/api/v1/runs/{run_id}/rollouts">;
export type RolloutFilter = Query<"/api/v1/runs/{run_id}/rollouts/{key}/{number}">;
export type TaskQuery = Query<"/api/v1/runs/{run_id}/tasks">;
export type DistributionQuery = Query<"/api/v1/runs/{run_id}/distribution">;
export type LogQuery = Query<"/api/v1/runs/{run_id}/log">;
export type EventQuery = Query<"/api/v1/runs/{run_id}/rollouts/{key}/{number}/events">;

/** Of a type that requests share: what a host may leave out, the server always answers. */
type Whole<T> = T extends readonly (infer Item)[]
  ? Whole<Item>[]
  : T extends object
    ? { [Key in keyof T]-?: Whole<Exclude<T[Key], undefined>> }
    : T;
export type GateQuery = Query<"/api/v1/runs/{run_id}/gate">;
export type PlanQuery = Query<"/api/v1/runs/{run_id}/plan">;
export type AgreementQuery = Query<"/api/v1/runs/{run_id}/agreement">;
