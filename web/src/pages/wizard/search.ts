/** What a person has chosen for a run, as it stands in the wizard's address: all of it but secrets, as text. */
import { changeSearch, compact, type RawSearch, readChoice, readChoices, readText } from "#/app/search";

export const STEPS = ["environment", "model", "configure", "review"] as const;
export type Step = (typeof STEPS)[number];
export const PERMISSIONS = ["sandboxes", "instances", "network"] as const;

const TEXTS = [
  "from", // a run to repeat: replaced by its settings once they are read
  "of", // the run that is repeated
  "version",
  "model",
  "agent",
  "n",
  "r",
  "tasks",
  "args",
  "max_tokens",
  "temperature",
  "sampling",
  "minutes",
  "budget",
  "retries",
  "concurrency",
  "name",
  "team",
  "more",
] as const;
export type TextName = (typeof TEXTS)[number];

type Texts = { [Name in TextName]?: string };
export type WizardSearch = Texts & { step?: Step; allow?: (typeof PERMISSIONS)[number][] };

export const readWizardSearch = (search: RawSearch): WizardSearch =>
  compact({
    step: readChoice(search.step, STEPS),
    allow: readChoices(search.allow, PERMISSIONS),
    ...Object.fromEntries(TEXTS.map((name) => [name, readText(search[name])])),
  }) as WizardSearch;

export const changeWizard = (before: WizardSearch, change: Partial<Record<keyof WizardSearch, unknown>>) =>
  changeSearch(
    before,
    Object.fromEntries(
      Object.entries(change).map(([name, value]) => [name, value === "" ? undefined : value]),
    ),
  ) as WizardSearch;

/** The same choices give the same text, in whatever order they were made. */
export const writeKey = (search: WizardSearch): string =>
  JSON.stringify(Object.entries(search).sort(([a], [b]) => (a < b ? -1 : 1)));
