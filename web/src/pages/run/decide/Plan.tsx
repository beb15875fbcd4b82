/** How many tasks and rollouts would decide, and what a budget can show; the answer fills the form of a new run. */
import { skipToken, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { planQuery } from "#/api/decisions";
import { sessionQuery } from "#/api/session";
import type { EvaluationDesign, PlanQuery, RunInfo } from "#/api/types";
import { Button, buttonClass } from "#/design/Button";
import { CodeBlock } from "#/design/CodeBlock";
import { Icon } from "#/design/Icon";
import { Section } from "#/design/Section";
import { Segmented } from "#/design/Segmented";
import { TextField } from "#/design/TextField";
import { NumberTable } from "#/parts/Chart";
import { formatCount, formatMoney, formatPercent, formatScore } from "#/parts/format";
import { PageLink } from "#/parts/PageLink";
import { Problem } from "#/parts/Problem";
import { quoteWord } from "../settings";
import type { ChangeDecision } from "./Decide";
import styles from "./decide.module.css";
import { type DecideSearch, GOALS, type Goal, readAmount } from "./search";
import { decideWords } from "./words";

const text = decideWords.plan;

type Row = EvaluationDesign["rows"][number];
type Props = { run: RunInfo; search: DecideSearch; onChange: ChangeDecision };

export function Plan({ run, search, onChange }: Props) {
  const goal = search.goal ?? "halfwidth";
  const [typed, setTyped] = useState(search.amount === undefined ? "" : String(search.amount));
  const [known, setKnown] = useState(search.amount);
  if (known !== search.amount) {
    setKnown(search.amount);
    setTyped(search.amount === undefined ? "" : String(search.amount));
  }
  const query = search.amount
    ? planQuery(run.id, buildPlanQuery(goal, search.amount, search.baseline))
    : null;
  const design = useQuery(query ?? { queryKey: ["plan", "none"], queryFn: skipToken });
  const isInvalid = typed.trim() !== "" && readAmount(typed.trim()) === undefined;
  return (
    <Section title={text.title} note={text.note}>
      <form
        className={styles.plan}
        onSubmit={(event) => {
          event.preventDefault();
          if (!isInvalid) onChange({ amount: readAmount(typed.trim()) });
        }}
      >
        <Segmented
          label={text.goal}
          value={goal}
          options={GOALS.map((value) => ({ value, label: text.goals[value] }))}
          onChange={(chosen) =>
            onChange({ goal: chosen === "halfwidth" ? undefined : chosen, amount: undefined })
          }
        />
        <TextField
          label={text.amount[goal]}
          inputMode="decimal"
          placeholder={goal === "budget" ? "25" : "0.03"}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          error={isInvalid ? text.invalid : undefined}
          className={styles.amount ?? ""}
        />
        <Button type="submit">{text.compute}</Button>
      </form>
      {query && (
        <div aria-live="polite" className={styles.answer}>
          <Problem error={design.error} />
          {design.data && !design.error && <Design run={run} design={design.data} />}
        </div>
      )}
    </Section>
  );
}

function buildPlanQuery(goal: Goal, amount: number, baseline: string | undefined): PlanQuery {
  return { [goal]: amount, ...(baseline ? { against: baseline } : {}) };
}

function Design({ run, design }: { run: RunInfo; design: EvaluationDesign }) {
  const { pilot, goal, rows, cheapest } = design;
  const best = cheapest === null ? null : (rows[cheapest] ?? null);
  const isNeed = goal.kind === "halfwidth" || goal.kind === "difference";
  return (
    <>
      {best === null ? (
        <p>{text.impossible}</p>
      ) : (
        <Answer run={run} row={best} known={pilot.tasks} isNeed={isNeed} />
      )}
      <NumberTable
        label={text.title}
        table={{
          head: Object.values(text.columns),
          rows: rows.map((row) => listCells(row, row === best, isNeed)),
        }}
      />
      <p className={styles.faint}>
        {design.twice_the_rollouts === null
          ? text.noGain
          : text.gain(formatPercent(design.twice_the_tasks), formatPercent(design.twice_the_rollouts))}{" "}
        {pilot.against.length === 0 && text.finds(formatPercent(goal.power), String(goal.correlation))}{" "}
        {rows.some((row) => row.fewest_tasks !== null) && text.brackets(pilot.tasks)}
      </p>
    </>
  );
}

function Answer(props: { run: RunInfo; row: Row; known: number; isNeed: boolean }) {
  const { run, row, known, isNeed } = props;
  const session = useQuery(sessionQuery);
  const more = row.tasks - known;
  const href = session.data?.has_logins ? buildWizardHref(run, row) : null;
  return (
    <div className={styles.advice}>
      <p>
        <strong>
          {!isNeed ? text.shows(formatScore(row.halfwidth)) : more > 0 ? text.more(more) : text.enough(known)}
        </strong>{" "}
        {text.total(row.tasks, row.rollouts_per_task)}
      </p>
      {href ? (
        <PageLink href={href} className={buttonClass("plain")}>
          <Icon name="play" />
          {text.run(row.tasks)}
        </PageLink>
      ) : (
        <CodeBlock text={buildPlannedCommand(run, row)} label={text.command} />
      )}
    </div>
  );
}

/** The form of a new run, filled with this run's settings and the planned size. */
export function buildWizardHref(run: Pick<RunInfo, "id" | "environment">, row: Row): string | null {
  const [owner, name, ...rest] = run.environment.split("/");
  if (!owner || !name || rest.length > 0) return null;
  const parameters = new URLSearchParams({
    from: run.id,
    n: String(row.tasks),
    r: String(row.rollouts_per_task),
  });
  return `/e/${encodeURIComponent(owner)}/${encodeURIComponent(name)}/run?${parameters}`;
}

const buildPlannedCommand = (run: RunInfo, row: Row): string =>
  `proctor eval run ${quoteWord(run.environment)} -m ${quoteWord(run.model)} -n ${row.tasks} -r ${row.rollouts_per_task}`;

function listCells(row: Row, isBest: boolean, isNeed: boolean) {
  const range =
    row.fewest_tasks !== null && row.most_tasks !== null
      ? ` (${formatCount(row.fewest_tasks)}–${formatCount(row.most_tasks)})`
      : "";
  return [
    formatCount(row.rollouts_per_task),
    `${formatCount(row.tasks)}${range}`,
    formatCount(row.rollouts),
    formatMoney(row.cost_usd),
    `±${formatScore(row.halfwidth)}`,
    `±${formatScore(row.smallest_difference)}`,
    isBest ? <strong key="note">{isNeed ? text.best.need : text.best.have}</strong> : "",
  ];
}
