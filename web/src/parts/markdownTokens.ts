/** Markdown as tokens, with formulas. Only the explicit marks make a formula: $5 stays what it costs. */
import { Lexer, Marked, type Token, type TokenizerAndRendererExtension } from "marked";

export type MathToken = { type: "math"; raw: string; text: string; display: boolean };

const blockMath: TokenizerAndRendererExtension = {
  name: "math",
  level: "block",
  start: (source) => source.match(/\$\$|\\\[/)?.index,
  tokenizer(source) {
    const found = /^(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])(?:\n|$)/.exec(source);
    if (!found) return;
    return { type: "math", raw: found[0], text: (found[1] ?? found[2] ?? "").trim(), display: true };
  },
};

const inlineMath: TokenizerAndRendererExtension = {
  name: "math",
  level: "inline",
  start: (source) => source.match(/\$\$|\\\(|\\\[/)?.index,
  tokenizer(source) {
    const found = /^(?:\\\(([^\n]+?)\\\)|\$\$([^\n]+?)\$\$|\\\[([^\n]+?)\\\])/.exec(source);
    if (!found) return;
    return {
      type: "math",
      raw: found[0],
      text: (found[1] ?? found[2] ?? found[3] ?? "").trim(),
      display: !found[1],
    };
  },
};

const options = new Marked({ gfm: true, extensions: [] })
  .use({ extensions: [blockMath] })
  .use({ extensions: [inlineMath] }).defaults;

export const LONGEST_MARKDOWN = 200_000;

export const lexMarkdown = (text: string): Token[] => new Lexer(options).lex(text);

/** Addresses that a click may open; anything else is shown as text. */
export function safeHref(href: string): string | null {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null; // relative: there is nothing here that it could be relative to
  }
}
