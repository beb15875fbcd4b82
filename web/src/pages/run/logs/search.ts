/** Which lines of a log are shown, as it stands in the address; the line itself is its hash. */
import type { LogQuery } from "#/api/types";
import { compact, type RawSearch, readChoice, readText } from "#/app/search";

export const LEVELS = ["INFO", "WARNING", "ERROR"] as const;

export const readLogSearch = (search: RawSearch) =>
  compact({ level: readChoice(search.level, LEVELS), q: readText(search.q) });

export type LogSearch = ReturnType<typeof readLogSearch>;
export type LogFilter = Pick<LogQuery, "level" | "q">;

/** A level stands for itself and the more severe ones. */
export const buildLogFilter = ({ level, q }: LogSearch): LogFilter =>
  compact({ level: level ? LEVELS.slice(LEVELS.indexOf(level)) : undefined, q });

export function readLine(hash: string): number | undefined {
  const found = /^#?L(\d{1,15})$/.exec(hash);
  return found ? Number(found[1]) : undefined;
}

export const nameLine = (number: number): string => `L${number}`;
