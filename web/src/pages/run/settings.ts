/** The settings of a run as text: in a list, as a command, as a suite in TOML. */
import type { RunInfo } from "#/api/types";

type Setting = unknown;
type RunLike = Pick<
  RunInfo,
  | "environment"
  | "version"
  | "model"
  | "settings"
  | "kind"
  | "timeout_minutes"
  | "max_cost_usd"
  | "team"
  | "name"
  | "permissions"
  | "agent"
>;

/** Said elsewhere in the command, or about files of the machine that it ran on. */
const LEFT_OUT = new Set([
  "env_id",
  "id",
  "model",
  "agent",
  "label",
  "config_hash",
  "endpoints_path",
  "env_dir_path",
  "output_dir",
  "resume",
  "save_results",
  "verbose",
  "name",
]);

export const UNSET = "–";

export function formatSetting(value: Setting): string {
  if (value === null || value === undefined || value === "") return UNSET;
  if (typeof value === "object" && Object.keys(value).length === 0) return UNSET;
  return typeof value === "string" ? value : JSON.stringify(value);
}

const isSet = (value: Setting): boolean =>
  value !== null &&
  value !== undefined &&
  value !== false &&
  value !== "" &&
  !(typeof value === "object" && Object.keys(value as object).length === 0);

export const listSettings = (settings: Readonly<Record<string, Setting>>): [string, Setting][] =>
  Object.entries(settings).filter(([name, value]) => !LEFT_OUT.has(name) && isSet(value));

/** A word for a POSIX shell. */
export const quoteWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

export function buildCommand(run: RunLike): string {
  const environment = run.version ? `${run.environment}@${run.version}` : run.environment;
  const parts = [
    `proctor eval run ${[environment, ...(run.agent ? [run.agent] : [])].map(quoteWord).join(" ")}`,
  ];
  parts.push(`-m ${quoteWord(run.model)}`);
  for (const [name, value] of listSettings(run.settings)) parts.push(...formatFlags(name, value));
  if (run.kind === "hosted") parts.push("--hosted", ...listHostedFlags(run));
  return parts.join(" \\\n  ");
}

function formatFlags(name: string, value: Setting): string[] {
  const flag = `--${name.replaceAll("_", "-")}`;
  if (value === true) return [flag];
  if (name === "headers" || name === "headers_from_state")
    return Object.entries(value as object).map(
      ([key, text]) =>
        `--${name === "headers" ? "header" : "header-from-state"} ${quoteWord(`${key}: ${text}`)}`,
    );
  if (Array.isArray(value)) return [`${flag} ${quoteWord(value.join(","))}`];
  return [`${flag} ${quoteWord(typeof value === "string" ? value : JSON.stringify(value))}`];
}

function listHostedFlags(run: RunLike): string[] {
  return [
    ...(run.timeout_minutes ? [`--timeout-minutes ${run.timeout_minutes}`] : []),
    ...(run.max_cost_usd ? [`--max-cost ${run.max_cost_usd}`] : []),
    ...(run.permissions.sandboxes ? ["--allow-sandbox-access"] : []),
    ...(run.permissions.instances ? ["--allow-instances-access"] : []),
    ...(run.permissions.network ? ["--allow-network-access"] : []),
    ...(run.team ? [`--team ${quoteWord(run.team)}`] : []),
    ...(run.name ? [`--eval-name ${quoteWord(run.name)}`] : []),
  ];
}

export function buildToml(run: RunLike): string {
  const environment = run.version ? `${run.environment}@${run.version}` : run.environment;
  const settings: [string, Setting][] = [
    ["env_id", environment],
    ["model", run.model],
    ...(run.agent ? ([["agent", run.agent]] as [string, Setting][]) : []),
    ...(run.kind === "hosted" ? listHostedKeys(run) : []),
    ...listSettings(run.settings),
  ];
  return ["[[eval]]", ...settings.map(([name, value]) => `${name} = ${formatToml(value)}`)].join("\n");
}

function listHostedKeys(run: RunLike): [string, Setting][] {
  const keys: [string, Setting][] = [
    ["hosted", true],
    ["timeout_minutes", run.timeout_minutes],
    ["max_cost", run.max_cost_usd],
    ["allow_sandbox_access", run.permissions.sandboxes],
    ["allow_instances_access", run.permissions.instances],
    ["allow_network_access", run.permissions.network],
    ["team", run.team],
    ["eval_name", run.name],
  ];
  return keys.filter(([, value]) => isSet(value));
}

/** A value in TOML; JSON's strings are TOML's basic strings, but for the characters TOML wants escaped. */
export function formatToml(value: Setting): string {
  if (typeof value === "string") return JSON.stringify(value).replaceAll("\x7f", "\\u007F");
  if (Array.isArray(value))
    return `[${value
      .filter((each) => each !== null)
      .map(formatToml)
      .join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const pairs = Object.entries(value).filter(([, each]) => each !== null);
    const name = (key: string) => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key));
    return `{ ${pairs.map(([key, each]) => `${name(key)} = ${formatToml(each)}`).join(", ")} }`;
  }
  return String(value);
}
