/** Choices → the request for a run; and a run → the choices that repeat it. */
import type { NewRun, RunInfo } from "#/api/types";
import { PERMISSIONS, type TextName, type WizardSearch } from "./search";
import { text } from "./words";

export type OwnSecret = { id: number; name: string; value: string };
export type Problems = Readonly<Record<string, string>>;
export type Request = {
  body: NewRun;
  /** What the browser alone can tell: a text that is not JSON. By the field of the request. */
  problems: Problems;
};

/** Which choice fills which setting. */
export const SETTINGS = {
  n: "num_examples",
  r: "rollouts_per_example",
  max_tokens: "max_tokens",
  temperature: "temperature",
  retries: "max_retries",
  concurrency: "max_concurrent",
} as const satisfies Partial<Record<TextName, string>>;
const TABLES = { args: "env_args", sampling: "sampling_args" } as const;
const HIDDEN = ["label", "config_hash", "name"];
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** A number where the text is one; what it is not, the server says. */
export function readNumber(given: string): number | string {
  const bare = given.trim();
  return NUMBER.test(bare) ? Number(bare) : bare;
}

export function readObject(given: string | undefined): Record<string, unknown> | null {
  if (!given?.trim()) return {};
  try {
    const value: unknown = JSON.parse(given);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

export function buildRequest(
  environment: string,
  search: WizardSearch,
  secrets: readonly OwnSecret[],
): Request {
  const problems: Record<string, string> = {};
  const table = (name: "args" | "sampling" | "more", field: string) => {
    const value = readObject(search[name]);
    if (value === null) problems[field] = text.notJson;
    return value ?? {};
  };
  const settings: Record<string, unknown> = table("more", "settings");
  for (const [name, setting] of Object.entries(SETTINGS) as [keyof typeof SETTINGS, string][])
    if (search[name]) settings[setting] = readNumber(search[name]);
  for (const [name, setting] of Object.entries(TABLES) as ["args" | "sampling", string][])
    if (search[name]) settings[setting] = table(name, `settings.${setting}`);
  if (search.tasks) settings.task_ids = readTaskIds(search.tasks);
  if (search.agent) settings.agent = search.agent;
  const body = {
    environment: search.version ? `${environment}@${search.version}` : environment,
    settings,
    ...(search.model ? { model: search.model } : {}),
    ...(search.name ? { name: search.name } : {}),
    ...(search.team ? { team: search.team } : {}),
    ...(search.allow ? { permissions: Object.fromEntries(search.allow.map((each) => [each, true])) } : {}),
    ...(search.minutes ? { timeout_minutes: readNumber(search.minutes) } : {}),
    ...(search.budget ? { max_cost_usd: readNumber(search.budget) } : {}),
    custom_secrets: Object.fromEntries(
      secrets.filter((each) => each.name || each.value).map((each) => [each.name.trim(), each.value]),
    ),
  };
  return { body: body as unknown as NewRun, problems };
}

export const readTaskIds = (given: string): string[] =>
  given
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);

// Repeating a run

const asText = (value: unknown): string | undefined =>
  value === null || value === undefined || value === "" ? undefined : String(value);
const asTable = (value: unknown): string | undefined =>
  typeof value === "object" && value !== null && Object.keys(value).length > 0
    ? JSON.stringify(value)
    : undefined;

export function repeatRun(run: RunInfo): WizardSearch {
  const settings: Record<string, unknown> = { ...run.settings };
  const take = (name: string): unknown => {
    const value = settings[name];
    delete settings[name];
    return value;
  };
  for (const name of HIDDEN) delete settings[name];
  const taken = {
    of: run.id,
    version: asText(run.version),
    model: run.model,
    agent: asText(take("agent")),
    ...Object.fromEntries(Object.entries(SETTINGS).map(([name, setting]) => [name, asText(take(setting))])),
    args: asTable(take("env_args")),
    sampling: asTable(take("sampling_args")),
    tasks: asText((take("task_ids") as unknown[] | undefined)?.join(",")),
    minutes: asText(run.timeout_minutes),
    budget: asText(run.max_cost_usd),
    name: asText(run.name),
    team: asText(run.team),
    allow: PERMISSIONS.filter((each) => run.permissions[each]),
    more: asTable(settings),
  };
  const { allow, ...texts } = taken;
  return Object.fromEntries(
    Object.entries({ ...texts, allow: allow.length > 0 ? allow : undefined }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as WizardSearch;
}
