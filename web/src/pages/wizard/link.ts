/** The wizard's address, filled in: for "run again", and for a plan that says how many tasks would decide. */
import { stringifySearch } from "#/app/search";
import type { WizardSearch } from "./search";

export const NEW_RUN = "New run";

type Filled = {
  /** `owner/name`, or `owner/name@version`; without one, it is chosen first or taken from the run. */
  environment?: string;
  /** A run to repeat. */
  from?: string;
  model?: string;
  tasks?: number;
  rollouts?: number;
  args?: Record<string, unknown>;
  minutes?: number;
  budgetUsd?: number;
  step?: WizardSearch["step"];
};

export function wizardAddress(filled: Filled): string {
  const [slug = "", version] = (filled.environment ?? "").split("@");
  const [owner, name, ...rest] = slug.split("/");
  const search = {
    from: filled.from,
    version,
    model: filled.model,
    n: filled.tasks,
    r: filled.rollouts,
    args: filled.args && Object.keys(filled.args).length > 0 ? JSON.stringify(filled.args) : undefined,
    minutes: filled.minutes,
    budget: filled.budgetUsd,
    step: filled.step,
  };
  const path =
    owner && name && rest.length === 0
      ? `/e/${encodeURIComponent(owner)}/${encodeURIComponent(name)}/run`
      : "/run";
  return path + stringifySearch(search);
}
