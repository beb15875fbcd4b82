/**
 * Search parameters of an address: plain words, a repeated name for a list. Pages validate what they get with
 * these readers, so that an address from anywhere gives a page and never an error.
 */

export type RawSearch = Record<string, unknown>;

export function parseSearch(text: string): RawSearch {
  const found: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const before = found[name];
    found[name] = before === undefined ? value : [before, value].flat();
  }
  return found;
}

/** Commas and slashes stay readable: they mean nothing in a query. */
export function stringifySearch(search: RawSearch): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value === undefined || value === null || value === "" || value === false) continue;
    for (const each of [value].flat()) parameters.append(name, String(each));
  }
  const text = parameters.toString().replaceAll("%2C", ",").replaceAll("%2F", "/");
  return text && `?${text}`;
}

const list = (value: unknown): string[] =>
  [value]
    .flat()
    .filter((each) => each !== undefined && each !== null && each !== "")
    .map(String);

export const readText = (value: unknown): string | undefined => list(value)[0];

export function readList(value: unknown): string[] | undefined {
  const found = [...new Set(list(value))];
  return found.length > 0 ? found : undefined;
}

export function readChoices<T extends string>(value: unknown, choices: readonly T[]): T[] | undefined {
  const found = choices.filter((choice) => list(value).includes(choice));
  return found.length > 0 ? found : undefined;
}

export const readChoice = <T extends string>(value: unknown, choices: readonly T[]): T | undefined =>
  choices.find((choice) => choice === list(value)[0]);

export function readNumber(value: unknown): number | undefined {
  const text = readText(value);
  const number = text === undefined ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : undefined;
}

export const readFlag = (value: unknown): true | undefined =>
  value === true || ["true", "1"].includes(readText(value) ?? "") ? true : undefined;

type Compact<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the parameters that are not there, so that they are not written to the address either. */
export const compact = <T extends object>(search: T): Compact<T> =>
  Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as Compact<T>;

/** Some parameters of an address, changed; undefined removes one. */
export type SearchChange<T> = { [K in keyof T]?: T[K] | undefined };

export const changeSearch = <T extends object>(before: T, change: SearchChange<T>): T =>
  compact({ ...before, ...change }) as T;
