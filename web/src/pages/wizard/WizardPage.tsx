/** Run Hosted Evaluation: environment and version, model, settings, review, start. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect } from "react";
import { runQuery } from "#/api/runs";
import { LoadError } from "#/app/PageError";
import { Button } from "#/design/Button";
import { Icon } from "#/design/Icon";
import { PageBody, PageHeader } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { EnvironmentLink } from "#/parts/EnvironmentLink";
import { PageLink } from "#/parts/PageLink";
import { words } from "#/words";
import { ConfigureStep } from "./ConfigureStep";
import { EnvironmentStep } from "./EnvironmentStep";
import { ModelStep } from "./ModelStep";
import { ReviewStep } from "./ReviewStep";
import { repeatRun } from "./request";
import { BackButton, StepHeading } from "./StepHeading";
import { StepList } from "./StepList";
import type { WizardSearch } from "./search";
import { nextStep, useWizard, type Wizard } from "./useWizard";
import styles from "./Wizard.module.css";
import { text } from "./words";

const route = getRouteApi("/e/$owner/$name/run");

export function WizardPage() {
  const { owner, name } = route.useParams();
  const search = route.useSearch() as WizardSearch;
  const environment = `${owner}/${name}`;
  useEffect(() => {
    document.title = `${text.title} · ${environment} · ${words.product}`;
  }, [environment]);
  return search.from ? (
    <Repeated id={search.from} search={search} />
  ) : (
    <WizardForm key={environment} environment={environment} search={search} />
  );
}

/** Replaces the run to repeat by its settings; what else the address says counts more. */
function Repeated({ id, search }: { id: string; search: WizardSearch }) {
  const run = useQuery(runQuery(id));
  const navigate = useNavigate();
  const { data } = run;
  useEffect(() => {
    if (!data) return;
    const { from: _, ...said } = search;
    const filled = { step: "review", ...repeatRun(data), ...said };
    void navigate({ to: ".", search: () => filled as never, replace: true });
  }, [data, search, navigate]);
  if (run.error && !data) return <LoadError error={run.error} onRetry={() => void run.refetch()} />;
  return <Skeleton lines={8} />;
}

function WizardForm({ environment, search }: { environment: string; search: WizardSearch }) {
  const wizard = useWizard(environment, search);
  const { step, choices, server } = wizard;
  return (
    <>
      <PageHeader
        above={<EnvironmentLink environment={environment} />}
        title={text.title}
        below={
          choices.of && (
            <span>
              {text.repeats}{" "}
              <PageLink href={`/runs/${encodeURIComponent(choices.of)}`}>{choices.of}</PageLink>
            </span>
          )
        }
      />
      <PageBody>
        <StepList wizard={wizard} />
        {server.isAway && <Away onRetry={server.recheck} />}
        <Standing wizard={wizard} />
        <StepHeading wizard={wizard} />
        {step === "review" ? <ReviewStep wizard={wizard} /> : <ChoosingStep wizard={wizard} />}
      </PageBody>
    </>
  );
}

function ChoosingStep({ wizard }: { wizard: Wizard }) {
  const { step } = wizard;
  const next = nextStep(step) ?? "review";
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    wizard.go(next);
  };
  return (
    <form className={styles.form} onSubmit={onSubmit} noValidate>
      {step === "environment" && <EnvironmentStep wizard={wizard} />}
      {step === "model" && <ModelStep wizard={wizard} />}
      {step === "configure" && <ConfigureStep wizard={wizard} />}
      <div className={styles.buttons}>
        <BackButton wizard={wizard} />
        <Button type="submit" look="primary">
          {text.next(text.step[next])}
          <Icon name="arrowRight" />
        </Button>
      </div>
    </form>
  );
}

function Away({ onRetry }: { onRetry: () => void }) {
  return (
    <div role="alert" className={styles.away}>
      <Icon name="alert" />
      <span>{text.away}</span>
      <Button small onClick={onRetry}>
        {words.retry}
      </Button>
    </div>
  );
}

/** What stands in the way whatever you enter: rights, money, quotas. */
function Standing({ wizard }: { wizard: Wizard }) {
  const { general } = wizard.server;
  if (general.length === 0) return null;
  return (
    <div role="alert" className={styles.refused}>
      <strong>{text.mayNot}</strong>
      <ul>
        {general.map((problem) => (
          <li key={problem.code + problem.message}>
            {problem.message} {problem.ask.length > 0 && <strong>{text.ask(problem.ask)}</strong>}
          </li>
        ))}
      </ul>
    </div>
  );
}
