/** Why a run ended, in words: a title, and the particulars without repeating it. */
import type { Cause } from "#/api/types";
import { words } from "#/words";

export function readCause({ code, message }: Cause): { title: string; message: string } {
  const title = words.causes[code] ?? code;
  if (!message.startsWith(`${title}: `)) return { title, message };
  const rest = message.slice(title.length + 2);
  return { title, message: rest.charAt(0).toUpperCase() + rest.slice(1) };
}
