/** Colours for Python and JSON, as class names per span. Loaded when the first code is shown. */
import { classHighlighter, highlightCode as walk } from "@lezer/highlight";
import { parser as json } from "@lezer/json";
import { parser as python } from "@lezer/python";
import type { CodeSpan } from "./Code";

export function highlightCode(text: string, language: string): CodeSpan[] | null {
  const parser = /^py/i.test(language) ? python : /^json/i.test(language) ? json : null;
  if (!parser) return null;
  const spans: CodeSpan[] = [];
  try {
    walk(
      text,
      parser.parse(text),
      classHighlighter,
      (part, tags) => spans.push({ text: part, tags }),
      () => spans.push({ text: "\n", tags: "" }),
    );
  } catch {
    return null; // nested more deeply than the stack is
  }
  return spans;
}
