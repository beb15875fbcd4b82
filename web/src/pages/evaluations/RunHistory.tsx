/** The runs behind the chart, newest first. */
import { Link, useNavigate } from "@tanstack/react-router";
import type { RunInfo } from "#/api/types";
import { Money, When } from "#/parts/Figures";
import { formatCount, formatPercent, formatRange } from "#/parts/format";
import { findDomain, Score } from "#/parts/Score";
import { StatusMark } from "#/parts/Status";
import { type Column, VirtualTable } from "#/parts/VirtualTable";
import { words } from "#/words";
import { nameVersion } from "./history";
import styles from "./RunHistory.module.css";

const columns = words.runs.columns;
const text = words.evaluations;
const ROW = 36;

export function RunHistory({ runs }: { runs: readonly RunInfo[] }) {
  const navigate = useNavigate();
  const domain = findDomain(runs.map((run) => run.score));
  const shown: readonly Column<RunInfo>[] = [
    { id: "status", title: columns.status, width: 6.5, cell: (run) => <StatusMark status={run.status} /> },
    { id: "version", title: text.version, width: 6, grow: 1, cell: (run) => nameVersion(run) },
    { id: "model", title: columns.model, width: 7, grow: 1, cell: (run) => run.model },
    ...(runs.some((run) => run.agent)
      ? [{ id: "agent", title: columns.agent, width: 5, cell: (run: RunInfo) => run.agent ?? "–" }]
      : []),
    {
      id: "score",
      title: columns.score,
      width: 9,
      cell: (run) => <Score score={run.score ? { ...run.score, coverage: null } : null} domain={domain} />,
    },
    {
      id: "interval",
      title: words.charts.interval,
      width: 7.5,
      cell: ({ score }) => (score?.interval ? formatRange(score.interval.low, score.interval.high) : "–"),
    },
    {
      id: "coverage",
      title: columns.coverage,
      width: 5,
      isNumber: true,
      cell: (run) => formatPercent(run.score?.coverage),
    },
    {
      id: "progress",
      title: columns.progress,
      width: 4.5,
      isNumber: true,
      cell: (run) => formatCount(run.progress.settled),
    },
    {
      id: "cost",
      title: columns.cost,
      width: 4.5,
      isNumber: true,
      cell: (run) => <Money usd={run.cost_usd} />,
    },
    {
      id: "history",
      title: text.recipe,
      width: 4.5,
      cell: (run) => (
        <Link
          to="/runs/$runId/decide"
          params={{ runId: run.id }}
          hash="history"
          aria-label={text.recipeHistory}
          title={text.recipeHistory}
        >
          {text.history}
        </Link>
      ),
    },
    {
      id: "created",
      title: columns.created,
      width: 5.5,
      isNumber: true,
      cell: (run) => (
        <Link to="/runs/$runId" params={{ runId: run.id }}>
          <When at={run.created_at} />
        </Link>
      ),
    },
  ];
  return (
    <div className={styles.box} style={{ height: `min(60vh, ${(runs.length + 1) * ROW}px)` }}>
      <VirtualTable
        label={text.table}
        columns={shown}
        count={runs.length}
        rowAt={(index) => runs[index]}
        keyOf={(run) => run.id}
        onOpen={(run) => void navigate({ to: "/runs/$runId", params: { runId: run.id } })}
      />
    </div>
  );
}
