/** A sweep's runs in rows and columns; every cell has a score with its interval, all on one axis. */
import { Link } from "@tanstack/react-router";
import { isActive } from "#/api/runs";
import type { RunInfo, SuiteCell, SuiteInfo } from "#/api/types";
import { Icon } from "#/design/Icon";
import { formatPercent, formatRange, formatScore } from "#/parts/format";
import { ProgressBar } from "#/parts/ProgressBar";
import { type Domain, describeScore, findDomain, IntervalBar } from "#/parts/Score";
import { StatusMark } from "#/parts/Status";
import { words } from "#/words";
import { MOST_COMPARED } from "../compare/most";
import { type Axes, findCells, valuesOf } from "./matrix";
import styles from "./Suites.module.css";

const text = words.suites;

export function Matrix({ suite, axes }: { suite: SuiteInfo; axes: Axes }) {
  const domain = findDomain(suite.cells.map((cell) => cell.run.score));
  const rows = valuesOf(suite, axes.rows);
  const columns = valuesOf(suite, axes.columns);
  return (
    <table className={styles.matrix} aria-label={text.matrix}>
      <thead>
        <tr>
          <th scope="col" className={styles.corner}>
            {axes.rows}
            {axes.columns !== null && <span className={styles.faint}> \ {axes.columns}</span>}
          </th>
          {columns.map((column) => (
            <th key={column} scope="col">
              <AxisValue
                axis={axes.columns}
                value={column}
                runs={rows.flatMap((row) => findCells(suite, axes, row, column))}
              />
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row}>
            <th scope="row">
              <AxisValue
                axis={axes.rows}
                value={row}
                runs={columns.flatMap((column) => findCells(suite, axes, row, column))}
              />
            </th>
            {columns.map((column) => {
              const cells = findCells(suite, axes, row, column);
              return (
                <td key={column}>
                  {cells.length === 0 && <span className={styles.faint}>{text.nothing}</span>}
                  {cells.map((cell) => (
                    <Cell key={cell.run.id} cell={cell} others={axes.others} domain={domain} />
                  ))}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A value of an axis, and a way to compare all runs that have it. */
function AxisValue({
  axis,
  value,
  runs,
}: {
  axis: string | null;
  value: string | null;
  runs: readonly SuiteCell[];
}) {
  const name = axis === null ? text.onlyAxis : value || words.none;
  const canCompare = axis !== null && runs.length >= 2 && runs.length <= MOST_COMPARED;
  return (
    <span className={styles.value}>
      {name}
      {canCompare && (
        <Link
          to="/compare"
          search={{ runs: runs.map((cell) => cell.run.id).join(",") }}
          className={styles.compare}
          aria-label={text.compareRow(name)}
          title={text.compareRow(name)}
        >
          <Icon name="compare" size={14} />
        </Link>
      )}
    </span>
  );
}

type CellProps = { cell: SuiteCell; others: readonly string[]; domain: Domain };

function Cell({ cell, others, domain }: CellProps) {
  const { run } = cell;
  const score = run.score;
  return (
    <div className={styles.cell}>
      {others.length > 0 && (
        <span className={styles.faint}>{others.map((axis) => `${axis} ${cell.at[axis]}`).join(", ")}</span>
      )}
      <Link
        to="/runs/$runId"
        params={{ runId: run.id }}
        className={styles.score}
        title={`${describeScore(score)} (${run.id})`}
      >
        {score?.mean == null ? text.noScore : formatScore(score.mean)}
      </Link>
      {score?.mean != null && (
        <>
          <IntervalBar mean={score.mean} interval={score.interval} domain={domain} />
          <span className={styles.faint}>
            {score.interval ? formatRange(score.interval.low, score.interval.high) : words.score.noInterval}
          </span>
        </>
      )}
      <CellState run={run} />
    </div>
  );
}

/** Only what a finished run does not have: progress, another ending, rollouts without a score. */
function CellState({ run }: { run: RunInfo }) {
  if (isActive(run.status)) return <ProgressBar progress={run.progress} status={run.status} />;
  if (run.status !== "finished") return <StatusMark status={run.status} />;
  const coverage = run.score?.coverage;
  if (coverage == null || coverage >= 1) return null;
  return (
    <span className={styles.partial}>
      <Icon name="half" size={12} />
      {words.score.covered(formatPercent(coverage))}
    </span>
  );
}
