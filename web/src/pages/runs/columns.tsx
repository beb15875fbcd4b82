/** What each column of the list of runs shows. */
import { Link } from "@tanstack/react-router";
import type { RunInfo, RunSort } from "#/api/types";
import { Duration, Elapsed, Money, Tokens, When } from "#/parts/Figures";
import { formatPercent } from "#/parts/format";
import { ProgressBar } from "#/parts/ProgressBar";
import { RunKind } from "#/parts/RunKind";
import { type Domain, Score } from "#/parts/Score";
import { StatusMark } from "#/parts/Status";
import type { Column } from "#/parts/VirtualTable";
import { words } from "#/words";
import type { ColumnId } from "./columnIds";
import styles from "./columns.module.css";

type RunColumn = Column<RunInfo, RunSort> & { id: ColumnId };

const text = words.runs.columns;

/** The scores of one environment are on one axis, so that their bars can be compared. */
export const buildColumns = (domains: ReadonlyMap<string, Domain>): readonly RunColumn[] => [
  { id: "status", title: text.status, width: 6.5, cell: (run) => <StatusMark status={run.status} /> },
  {
    id: "name",
    title: text.name,
    width: 11,
    grow: 2,
    sort: "name",
    cell: (run) => <NameCell run={run} />,
  },
  {
    id: "environment",
    title: text.environment,
    width: 10,
    grow: 1,
    sort: "environment",
    cell: (run) => nameVersion(run),
  },
  {
    id: "model",
    title: text.model,
    width: 7,
    grow: 1,
    sort: "model",
    cell: (run) => <span title={run.model}>{run.model}</span>,
  },
  { id: "agent", title: text.agent, width: 5.5, cell: (run) => run.agent ?? <None /> },
  {
    id: "score",
    title: text.score,
    width: 10,
    sort: "score",
    cell: (run) => <Score score={run.score} domain={domains.get(run.environment)} />,
  },
  {
    id: "coverage",
    title: text.coverage,
    width: 5.5,
    sort: "coverage",
    isNumber: true,
    cell: (run) => formatPercent(run.score?.coverage),
  },
  {
    id: "progress",
    title: text.progress,
    width: 5.5,
    cell: (run) => <ProgressBar progress={run.progress} status={run.status} />,
  },
  {
    id: "cost",
    title: text.cost,
    width: 4.5,
    sort: "cost",
    isNumber: true,
    cell: (run) => <Money usd={run.cost_usd} />,
  },
  {
    id: "tokens",
    title: text.tokens,
    width: 5,
    isNumber: true,
    cell: (run) => <Tokens count={run.input_tokens + run.output_tokens} />,
  },
  {
    id: "duration",
    title: text.duration,
    width: 4.5,
    sort: "duration",
    isNumber: true,
    cell: (run) => <RunDuration run={run} />,
  },
  { id: "owner", title: text.owner, width: 4.5, cell: (run) => run.team ?? run.owner },
  { id: "kind", title: text.kind, width: 4.5, cell: (run) => <RunKind run={run} /> },
  { id: "tags", title: text.tags, width: 8, cell: (run) => run.tags.join(", ") || <None /> },
  {
    id: "created",
    title: text.created,
    width: 5.5,
    sort: "created",
    isNumber: true,
    cell: (run) => <When at={run.created_at} />,
  },
];

const None = () => <span className={styles.none}>–</span>;

const nameVersion = (run: RunInfo): string =>
  run.version ? `${run.environment}@${run.version}` : run.environment;

/** Of a submitted run the commit says more than the version that was made from it. */
function describeCode(run: RunInfo): string {
  if (run.origin) return `${run.origin.rollout}@${run.origin.commit_sha.slice(0, 8)}`;
  return run.name ? nameVersion(run) : run.id;
}

function NameCell({ run }: { run: RunInfo }) {
  return (
    <span className={styles.name}>
      <Link
        to="/runs/$runId"
        params={{ runId: run.id }}
        className={styles.link}
        title={run.name || nameVersion(run)}
      >
        {run.name || nameVersion(run)}
      </Link>
      <span className={styles.id}>{describeCode(run)}</span>
    </span>
  );
}

export function RunDuration({ run }: { run: RunInfo }) {
  if (run.status === "pending") return <Duration seconds={null} />;
  return <Elapsed from={run.started_at} to={run.ended_at} />;
}
