/** The same run as a command line, and as a TOML file. Secrets are named, never written. */
import type { NewRun } from "#/api/types";

const PLAIN = /^[\w@%+=:,./-]+$/;
const BARE_KEY = /^[A-Za-z0-9_-]+$/;
const FLAGS: Record<string, string> = { headers: "--header", headers_from_state: "--header-from-state" };
const SHORT: Record<string, string> = {
  num_examples: "-n",
  rollouts_per_example: "-r",
  env_args: "-a",
  max_tokens: "-t",
  temperature: "-T",
  sampling_args: "-S",
  max_concurrent: "-c",
};
const ALLOWED = {
  sandboxes: "allow-sandbox-access",
  instances: "allow-instances-access",
  network: "allow-network-access",
} as const;
export const DEFAULT_MINUTES = 120;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const quote = (word: string): string =>
  PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

const permitted = (run: NewRun): string[] =>
  Object.entries(ALLOWED).flatMap(([name, flag]) =>
    run.permissions?.[name as keyof typeof ALLOWED] ? [flag] : [],
  );

export function buildCommand(run: NewRun): string {
  const { agent, ...settings } = run.settings as Record<string, unknown>;
  const words = ["proctor", "eval", "run", run.environment, ...(agent ? [String(agent)] : [])];
  const add = (flag: string, value: unknown) => words.push(flag, String(value));
  if (run.model) add("-m", run.model);
  for (const [name, value] of Object.entries(settings)) words.push(...writeFlag(name, value));
  if (run.max_cost_usd !== undefined && run.max_cost_usd !== null) add("--max-cost", run.max_cost_usd);
  if (run.timeout_minutes !== undefined && run.timeout_minutes !== DEFAULT_MINUTES)
    add("--timeout-minutes", run.timeout_minutes);
  for (const flag of permitted(run)) words.push(`--${flag}`);
  const secrets = Object.keys(run.custom_secrets ?? {});
  if (secrets.length > 0) add("--custom-secrets", secrets.join(","));
  if (run.name) add("--eval-name", run.name);
  if (run.team) add("--team", run.team);
  return [...words, "--hosted"].map(quote).join(" ");
}

function writeFlag(name: string, value: unknown): string[] {
  const flag = SHORT[name] ?? FLAGS[name] ?? `--${name.replaceAll("_", "-")}`;
  if (name in FLAGS && isObject(value))
    return Object.entries(value).flatMap(([header, content]) => [flag, `${header}: ${String(content)}`]);
  if (value === true) return [flag];
  if (value === false || value === null) return [];
  if (Array.isArray(value)) return [flag, value.map(String).join(",")];
  return [flag, isObject(value) ? JSON.stringify(value) : String(value)];
}

export function buildToml(run: NewRun): string {
  const fields: Record<string, unknown> = {
    env_id: run.environment,
    model: run.model,
    ...(run.settings as Record<string, unknown>),
    max_cost: run.max_cost_usd,
    timeout_minutes: run.timeout_minutes === DEFAULT_MINUTES ? undefined : run.timeout_minutes,
    ...Object.fromEntries(permitted(run).map((flag) => [flag.replaceAll("-", "_"), true])),
    eval_name: run.name || undefined,
    team: run.team,
  };
  const lines = Object.entries(fields).flatMap(([name, value]) => {
    if (value === undefined || value === null) return [];
    return [`${writeKey(name)} = ${writeValue(value)}`];
  });
  const secrets = Object.keys(run.custom_secrets ?? {});
  const note = secrets.length > 0 ? [`# start it with --custom-secrets ${secrets.join(",")}`] : [];
  return [...note, "hosted = true", "", "[[eval]]", ...lines, ""].join("\n");
}

const writeKey = (name: string): string => (BARE_KEY.test(name) ? name : writeText(name));
const writeText = (value: string): string => JSON.stringify(value).replaceAll("\u007f", "\\u007F");

/** TOML has no null: what is null is left out. */
function writeValue(value: unknown): string {
  if (typeof value === "string") return writeText(value);
  if (Array.isArray(value))
    return `[${value
      .filter((each) => each !== null)
      .map(writeValue)
      .join(", ")}]`;
  if (!isObject(value)) return String(value);
  const inner = Object.entries(value).filter(([, each]) => each !== null && each !== undefined);
  if (inner.length === 0) return "{}";
  return `{ ${inner.map(([name, each]) => `${writeKey(name)} = ${writeValue(each)}`).join(", ")} }`;
}
