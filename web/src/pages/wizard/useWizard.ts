/**
 * The state of the wizard: choices that are mirrored to the address, secrets that are not, and what the server
 * says of both.
 */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { isAway } from "#/api/client";
import { estimateQuery, runCheckQuery } from "#/api/startRun";
import type { RunCheck, RunProblem } from "#/api/types";
import { buildRequest, type OwnSecret, type Problems } from "./request";
import { changeWizard, STEPS, type Step, type WizardSearch, writeKey } from "./search";
import { useSettled } from "./useSettled";
import { text } from "./words";

const PAUSE_MS = 250;

export type Change = Partial<Record<keyof WizardSearch, unknown>>;

export type Wizard = {
  environment: string;
  choices: WizardSearch;
  step: Step;
  change: (change: Change) => void;
  go: (step: Step) => void;
  secrets: readonly OwnSecret[];
  setSecrets: (secrets: readonly OwnSecret[]) => void;
  server: ReturnType<typeof useServer>;
};

export function useWizard(environment: string, search: WizardSearch): Wizard {
  const { choices, change, go } = useMirrored(search);
  const [secrets, setSecrets] = useState<readonly OwnSecret[]>([]);
  const server = useServer(environment, search, secrets);
  return {
    environment,
    choices,
    step: choices.step ?? "environment",
    change,
    go,
    secrets,
    setSecrets,
    server,
  };
}

/** Choices that are written to the address a moment after the last key, and read from it when you go back. */
function useMirrored(search: WizardSearch) {
  const navigate = useNavigate();
  const [choices, setChoices] = useState(search);
  const [written, setWritten] = useState(writeKey(search));
  const [seen, setSeen] = useState(written);
  const current = writeKey(search);
  if (current !== seen) {
    setSeen(current);
    if (current !== written) setChoices(search);
  }
  const key = writeKey(choices);
  useEffect(() => {
    if (key === written || key === current) return;
    const timer = setTimeout(() => {
      setWritten(key);
      void navigate({ to: ".", search: () => choices as never, replace: true });
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [key, written, current, choices, navigate]);
  return {
    choices,
    change: (change: Change) => setChoices((before) => changeWizard(before, change)),
    go: (step: Step) => {
      const next = changeWizard(choices, { step });
      setChoices(next);
      setWritten(writeKey(next));
      void navigate({ to: ".", search: () => next as never });
    },
  };
}

/** What the server says of the choices that stand in the address. */
function useServer(environment: string, search: WizardSearch, secrets: readonly OwnSecret[]) {
  const settled = useSettled(secrets, PAUSE_MS);
  const { step: _, of: __, ...asked } = search;
  const request = buildRequest(environment, search, settled);
  const key = JSON.stringify([environment, writeKey(asked), settled.map(({ id, name }) => [id, name])]);
  const valued = useVersion(settled);
  const check = useQuery(runCheckQuery(request.body, `${key} ${valued}`));
  const isBlocked = check.data?.problems.some(({ field }) => !isBesideEstimate(field)) ?? true;
  const mayEstimate = !isBlocked && !check.isPlaceholderData;
  const estimate = useQuery({
    ...estimateQuery({ ...request.body, custom_secrets: {} }, key),
    enabled: mayEstimate,
  });
  return {
    request,
    check: check.data,
    isChecking: check.isFetching,
    isAway: isAway(check.failureReason ?? check.error),
    recheck: () => void check.refetch(),
    problems: collectProblems(request.problems, check.data?.problems ?? []),
    general: (check.data?.problems ?? []).filter((problem) => problem.field === ""),
    estimate: isBlocked ? undefined : estimate.data,
    isBlocked: isBlocked && check.data !== undefined,
  };
}

/** An estimate does not need rights, secrets or money. */
const isBesideEstimate = (field: string): boolean =>
  field === "" || field === "max_cost_usd" || field.startsWith("custom_secrets");

/** A number that grows when the secrets change, so that a query's key can tell without holding them. */
function useVersion(secrets: readonly OwnSecret[]): number {
  const [known, setKnown] = useState({ secrets, version: 0 });
  if (known.secrets !== secrets) {
    setKnown({ secrets, version: known.version + 1 });
    return known.version + 1;
  }
  return known.version;
}

/** The browser's own problems first: the server did not see what could not be sent. */
export function collectProblems(own: Problems, found: readonly RunProblem[]): Problems {
  const told = Object.fromEntries(
    found
      .filter((problem) => problem.field !== "")
      .map((problem) => [problem.field, describeProblem(problem)]),
  );
  return { ...told, ...own };
}

/** What is wrong, and who could help. */
export const describeProblem = ({ message, ask }: RunProblem): string =>
  ask.length > 0 ? `${message} ${text.ask(ask)}` : message;

/** Where a problem is solved. */
export function findStep(field: string): Step {
  if (field === "environment") return "environment";
  if (field === "model" || field === "settings.agent") return "model";
  return field === "" ? "review" : "configure";
}

export const countProblems = (problems: Problems, step: Step): number =>
  Object.keys(problems).filter((field) => findStep(field) === step).length;

export const nextStep = (step: Step): Step | undefined => STEPS[STEPS.indexOf(step) + 1];
export const previousStep = (step: Step): Step | undefined => STEPS[STEPS.indexOf(step) - 1];

export const mayStart = (check: RunCheck | undefined, problems: Problems): boolean =>
  check?.may_start === true && Object.keys(problems).length === 0;
