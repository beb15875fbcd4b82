/** JSON that a model or a tool wrote, laid out for reading where that is safe. */

const LONGEST = 50_000;
const DEEPEST = 60;

/** The text indented, or null if it is no JSON object or list, too long, or nested too deeply to be read. */
export function indentJson(text: string): string | null {
  const start = text.trimStart()[0];
  if ((start !== "{" && start !== "[") || text.length > LONGEST || isDeep(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

function isDeep(text: string): boolean {
  let depth = 0;
  for (const letter of text) {
    if (letter === "{" || letter === "[") depth += 1;
    else if (letter === "}" || letter === "]") depth -= 1;
    if (depth > DEEPEST) return true;
  }
  return false;
}

/** A value as text; one that is nested too deeply for the stack says so. */
export function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value, null, 2) ?? "";
  } catch (error) {
    return `(${String(error)})`;
  }
}
