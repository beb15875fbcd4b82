/** The run as it would start, what it takes and shows, the same for the command line; and the start. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { FormEvent } from "react";
import { useChange } from "#/api/change";
import { ApiError } from "#/api/client";
import { RUNS_KEY } from "#/api/runs";
import { sessionQuery } from "#/api/session";
import { startRun } from "#/api/startRun";
import type { NewRun, RunInfo } from "#/api/types";
import { Button } from "#/design/Button";
import { CodeBlock } from "#/design/CodeBlock";
import { Facts } from "#/design/Facts";
import { Section } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { Commands } from "#/parts/Commands";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import { describeHalfwidth, EstimateFacts } from "./EstimateFacts";
import { buildCommand, buildToml, DEFAULT_MINUTES } from "./equivalents";
import { buildRequest } from "./request";
import { BackButton } from "./StepHeading";
import { describeProblem, findStep, mayStart, type Wizard } from "./useWizard";
import styles from "./Wizard.module.css";
import { text } from "./words";

const say = text.review;

export function ReviewStep({ wizard }: { wizard: Wizard }) {
  const { server } = wizard;
  // Not the request that was checked: a key may have been pressed since.
  const { body } = buildRequest(wizard.environment, wizard.choices, wizard.secrets);
  const start = useStart(wizard);
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (reason === null) start.submit(body);
  };
  const reason = start.isBusy ? null : findReason(wizard);
  return (
    <form className={styles.form} onSubmit={onSubmit}>
      <ProblemList wizard={wizard} />
      <div className={styles.halves}>
        <Section title={say.estimate}>
          <EstimateFacts wizard={wizard} />
        </Section>
        <Section title={say.shows}>
          {server.estimate && (
            <Facts
              facts={[{ name: say.halfwidth, value: <strong>{describeHalfwidth(server.estimate)}</strong> }]}
            />
          )}
          {server.estimate || server.isBlocked ? (
            <p className={styles.soft}>{server.estimate?.halfwidth_basis ?? say.estimateFails}</p>
          ) : (
            <Skeleton lines={1} />
          )}
        </Section>
      </div>
      <Section title={say.settings}>
        <Settings wizard={wizard} body={body} />
      </Section>
      <Section title={say.sameAs}>
        <div className={styles.stack}>
          <h3>{say.command}</h3>
          <CodeBlock text={buildCommand(body)} label={say.command} wrap />
          <h3>
            {say.toml}{" "}
            <span className={styles.soft}>
              <Commands text={say.tomlNote} />
            </span>
          </h3>
          <CodeBlock text={buildToml(body)} label={say.toml} wrap />
        </div>
      </Section>
      <Problem error={start.error} />
      <div className={styles.buttons}>
        <BackButton wizard={wizard} />
        <RefusableButton type="submit" look="primary" icon="play" reason={reason} aria-busy={start.isBusy}>
          {start.isBusy ? text.starting : text.start}
        </RefusableButton>
      </div>
    </form>
  );
}

/** One key for the whole visit: however often it is pressed, one run starts. */
function useStart(wizard: Wizard) {
  const navigate = useNavigate();
  const client = useQueryClient();
  return useChange<NewRun, RunInfo>({
    send: async (body, key) => {
      try {
        return await startRun(body, key);
      } catch (error) {
        // The check asks again: it leads to the login page, or shows the refusal at its field.
        if (error instanceof ApiError && error.status !== 0) {
          if (error.status === 401) void client.invalidateQueries({ queryKey: sessionQuery.queryKey });
          wizard.server.recheck();
        }
        throw error;
      }
    },
    refresh: [RUNS_KEY],
    onDone: (run) => void navigate({ to: "/runs", search: { new: run.id } }),
  });
}

function findReason(wizard: Wizard): string | null {
  const { server } = wizard;
  if (mayStart(server.check, server.problems)) return null;
  const first = server.general[0];
  if (first) return describeProblem(first);
  return Object.values(server.problems)[0] ?? (server.isAway ? text.away : say.estimateFails);
}

function ProblemList({ wizard }: { wizard: Wizard }) {
  const found = Object.entries(wizard.server.problems);
  if (found.length === 0) return null;
  return (
    <div role="alert" className={styles.refused}>
      <strong>{say.fix}</strong>
      <ul>
        {found.map(([field, message]) => (
          <li key={field}>
            <Commands text={message} />{" "}
            <Button small onClick={() => wizard.go(findStep(field))}>
              {say.goTo(text.step[findStep(field)])}
            </Button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Settings({ wizard, body }: { wizard: Wizard; body: NewRun }) {
  const session = useQuery(sessionQuery);
  const { check } = wizard.server;
  const { agent, ...settings } = body.settings as Record<string, unknown>;
  const reaching = (check?.secrets ?? []).filter((secret) => secret.reaches && secret.origin !== "variable");
  const allowed = (wizard.choices.allow ?? []).map((name) => text.configure.allow[name]);
  return (
    <Facts
      facts={[
        {
          name: say.environment,
          value: check?.version ? `${wizard.environment}@${check.version}` : body.environment,
        },
        { name: say.model, value: check?.model ?? body.model ?? say.serverDefault },
        Boolean(agent) && { name: say.agent, value: String(agent) },
        ...Object.entries(settings).map(([name, value]) => ({
          name: <code>{name}</code>,
          value: <code>{typeof value === "string" ? value : JSON.stringify(value)}</code>,
        })),
        { name: say.timeLimit, value: say.minutes(String(body.timeout_minutes ?? DEFAULT_MINUTES)) },
        { name: say.budget, value: body.max_cost_usd ? `$${body.max_cost_usd}` : say.noBudget },
        { name: say.payer, value: check?.payer ?? body.team ?? session.data?.user?.name ?? "" },
        { name: say.permissions, value: allowed.join(", ") || say.noPermissions },
        { name: say.secrets, value: reaching.map((each) => each.name).join(", ") || say.noSecrets },
        Boolean(body.name) && { name: say.name, value: body.name },
      ]}
    />
  );
}
