/** The signature of load_environment(), as a check keeps it, and values as people write them. */
import type { EnvironmentVersion } from "#/api/types";
import { readNumber } from "./request";

/** Type and default are as written in the source; without a default, a run must give a value. */
export type Argument = { name: string; type: string | null; default: string | null };
export type ArgumentKind = "number" | "boolean" | "text" | "value";

/** None where the check has not kept one. */
export function readSignature(version: EnvironmentVersion | undefined): readonly Argument[] | null {
  const details = (version as { details?: { arguments?: Argument[] } | null } | undefined)?.details;
  return details?.arguments ?? null;
}

export function readKind(type: string | null): ArgumentKind {
  const bare = (type ?? "").replace(/\s*\|\s*None$/, "").replace(/^Optional\[(.*)\]$/, "$1");
  if (bare === "int" || bare === "float") return "number";
  if (bare === "bool") return "boolean";
  return bare === "str" ? "text" : "value";
}

/** What a person typed, as a value; undefined for the default. A text that is not JSON is that text. */
export function readArgument(typed: string, kind: ArgumentKind): unknown {
  if (typed === "") return undefined;
  if (kind === "text") return typed;
  if (kind === "number") return readNumber(typed);
  try {
    return JSON.parse(typed) as unknown;
  } catch {
    return typed;
  }
}

export function writeArgument(value: unknown, kind: ArgumentKind): string {
  if (value === undefined) return "";
  if (typeof value === "string" && (kind !== "value" || !isJson(value))) return value;
  return kind === "text" && typeof value !== "object" ? String(value) : JSON.stringify(value);
}

function isJson(typed: string): boolean {
  try {
    JSON.parse(typed);
    return true;
  } catch {
    return false;
  }
}
