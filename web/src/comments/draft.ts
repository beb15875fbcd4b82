/** What was typed and not sent: it survives a reload, a lost session and a step elsewhere, in this tab. */
import { useState } from "react";

const PREFIX = "proctor-draft:";

function read(key: string): string {
  try {
    return sessionStorage.getItem(PREFIX + key) ?? "";
  } catch {
    return ""; // storage may be forbidden
  }
}

function write(key: string, text: string): void {
  try {
    if (text) sessionStorage.setItem(PREFIX + key, text);
    else sessionStorage.removeItem(PREFIX + key);
  } catch {
    // then it is not kept
  }
}

export function useDraft(key: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => read(key));
  return [
    text,
    (next) => {
      setText(next);
      write(key, next);
    },
  ];
}
