/** Resumes a run, with the limits that it had or with others. */
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useChange } from "#/api/change";
import { type ResumeLimits, resumeRun } from "#/api/runActions";
import { isActive } from "#/api/runs";
import type { RunInfo } from "#/api/types";
import { announce } from "#/app/announcer";
import { Button } from "#/design/Button";
import { Dialog } from "#/design/Dialog";
import { TextField } from "#/design/TextField";
import { formatMoney } from "#/parts/format";
import { Problem } from "#/parts/Problem";
import { words as common } from "#/words";
import styles from "./actions.module.css";
import { countLeft } from "./rights";
import { actionWords } from "./words";

const words = actionWords.resume;
const LONGEST_MINUTES = 1440;

/** Which limit stopped the run: it is doubled to begin with. */
export type RaisedLimit = "time" | "budget" | null;

type Props = { run: RunInfo; raise: RaisedLimit; onClose: () => void };

export function ResumeDialog({ run, raise, onClose }: Props) {
  const client = useQueryClient();
  const [minutes, setMinutes] = useState(() => suggestMinutes(run, raise));
  const [budget, setBudget] = useState(() => suggestBudget(run, raise));
  const [isChecked, setChecked] = useState(false);
  const resume = useChange<ResumeLimits, RunInfo>({
    send: (limits) => resumeRun(client, run.id, limits),
    onDone: () => {
      announce(words.done);
      onClose();
    },
  });
  const limits = readLimits(minutes, budget);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setChecked(true);
    if (limits.value) resume.submit(limits.value);
  };
  const left = countLeft(run);
  const isTooLate = isActive(run.status) && !resume.isBusy && !resume.answer;
  return (
    <Dialog open onClose={onClose} title={words.title}>
      <form className={styles.form} onSubmit={submit} noValidate>
        <p>{left === null ? words.leftUnknown : words.left(left)}</p>
        <TextField
          label={words.minutes}
          hint={words.minutesHint}
          error={resume.problems.timeout_minutes ?? (isChecked ? limits.minutes : undefined)}
          inputMode="numeric"
          value={minutes}
          onChange={(event) => setMinutes(event.target.value)}
        />
        <TextField
          label={words.budget}
          hint={words.budgetHint(run.cost_usd === null ? null : formatMoney(run.cost_usd))}
          error={resume.problems.max_cost_usd ?? (isChecked ? limits.budget : undefined)}
          inputMode="decimal"
          value={budget}
          onChange={(event) => setBudget(event.target.value)}
        />
        <Problem error={resume.error} fields={["timeout_minutes", "max_cost_usd"]} />
        {isTooLate && <p role="alert">{words.tooLate(common.status[run.status])}</p>}
        <div className={styles.buttons}>
          <Button onClick={onClose}>{actionWords.cancel}</Button>
          <Button type="submit" look="primary" disabled={resume.isBusy || isTooLate}>
            {words.button}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function suggestMinutes(run: RunInfo, raise: RaisedLimit): string {
  if (run.timeout_minutes === null) return "";
  return String(raise === "time" ? Math.min(LONGEST_MINUTES, run.timeout_minutes * 2) : run.timeout_minutes);
}

function suggestBudget(run: RunInfo, raise: RaisedLimit): string {
  if (run.max_cost_usd === null) return "";
  return String(raise === "budget" ? run.max_cost_usd * 2 : run.max_cost_usd);
}

type ReadLimits = { value: ResumeLimits | null; minutes?: string; budget?: string };

/** What was typed, as limits; or what is wrong with it. Empty leaves a limit as it was. */
export function readLimits(minutes: string, budget: string): ReadLimits {
  const time = minutes.trim() === "" ? null : Number(minutes);
  const money = budget.trim() === "" ? null : Number(budget.trim().replace(/^\$/, ""));
  const isTimeBad = time !== null && !(Number.isInteger(time) && time >= 1 && time <= LONGEST_MINUTES);
  const isMoneyBad = money !== null && !(Number.isFinite(money) && money > 0);
  if (isTimeBad || isMoneyBad)
    return {
      value: null,
      ...(isTimeBad ? { minutes: words.minutesInvalid } : {}),
      ...(isMoneyBad ? { budget: words.budgetInvalid } : {}),
    };
  return {
    value: {
      ...(time === null ? {} : { timeout_minutes: time }),
      ...(money === null ? {} : { max_cost_usd: money }),
    },
  };
}
