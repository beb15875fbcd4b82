/** The runs of a sweep as a matrix: which axes it has, and which runs stand where. Knows nothing of React. */
import { isActive } from "#/api/runs";
import type { SuiteCell, SuiteInfo } from "#/api/types";

export type Axes = { rows: string | null; columns: string | null; others: string[] };

/** The axes to show: those asked for, if the sweep has them; else the first two. */
export function chooseAxes(suite: SuiteInfo, asked: { rows?: string; columns?: string } = {}): Axes {
  const names = Object.keys(suite.axes);
  const has = (name: string | undefined): name is string => name !== undefined && names.includes(name);
  const rows = has(asked.rows) ? asked.rows : (names.find((name) => name !== asked.columns) ?? null);
  const columns =
    has(asked.columns) && asked.columns !== rows
      ? asked.columns
      : (names.find((name) => name !== rows) ?? null);
  return { rows, columns, others: names.filter((name) => name !== rows && name !== columns) };
}

export const valuesOf = (suite: SuiteInfo, axis: string | null): readonly (string | null)[] =>
  axis === null ? [null] : (suite.axes[axis] ?? []);

/** The runs at a row and a column: several if the sweep has more axes, none if it was not played there. */
export const findCells = (
  suite: SuiteInfo,
  axes: Axes,
  row: string | null,
  column: string | null,
): SuiteCell[] =>
  suite.cells.filter(
    (cell) =>
      (axes.rows === null || cell.at[axes.rows] === row) &&
      (axes.columns === null || cell.at[axes.columns] === column),
  );

/** What the sweep is of: its environments, by name. */
export const nameEnvironments = (suite: SuiteInfo): string =>
  suite.name || [...new Set(suite.cells.map((cell) => cell.run.environment))].join(", ");

export type SuiteState = { active: number; failed: number; low: number | null; high: number | null };

export function summarize(suite: SuiteInfo): SuiteState {
  const means = suite.cells.map((cell) => cell.run.score?.mean).filter((mean) => mean != null);
  return {
    active: suite.cells.filter((cell) => isActive(cell.run.status)).length,
    failed: suite.cells.filter((cell) => ["failed", "timed_out"].includes(cell.run.status)).length,
    low: means.length > 0 ? Math.min(...means) : null,
    high: means.length > 0 ? Math.max(...means) : null,
  };
}
