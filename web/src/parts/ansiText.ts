/**
 * Terminal output as styled text: SGR sequences (colours, bold) become styles, every other control character
 * becomes a visible symbol, so that no log can move a cursor, set a title, or hide a line.
 */

export type AnsiStyle = {
  color?: string;
  background?: string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
};
export type AnsiSpan = { text: string; style: AnsiStyle };

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are the subject
const SGR = /\x1b\[([0-9;:]*)m/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are the subject
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;
const DIRECTION = /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g;
const PICTURES = 0x2400;
const DELETE = 0x7f;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** Control characters as their pictures, and marks that reverse the direction of text as their numbers. */
export const showControls = (text: string): string =>
  text
    .replace(CONTROL, (found) => {
      const code = found.charCodeAt(0);
      return code === DELETE ? "␡" : String.fromCharCode(PICTURES + code);
    })
    .replace(DIRECTION, (found) => `⟨U+${found.charCodeAt(0).toString(16).toUpperCase()}⟩`);

export function parseAnsi(text: string, before: AnsiStyle = {}): { spans: AnsiSpan[]; style: AnsiStyle } {
  const spans: AnsiSpan[] = [];
  let style = before;
  let at = 0;
  const add = (part: string) => part && spans.push({ text: showControls(part), style });
  for (const found of text.matchAll(SGR)) {
    add(text.slice(at, found.index));
    style = applySgr(style, (found[1] || "0").split(/[;:]/).map(Number));
    at = found.index + found[0].length;
  }
  add(text.slice(at));
  return { spans, style };
}

export const stripAnsi = (text: string): string => showControls(text.replace(SGR, ""));

function applySgr(before: AnsiStyle, codes: number[]): AnsiStyle {
  let style = { ...before };
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    if (code === 0) style = {};
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 22) style = { ...style, bold: false, dim: false };
    else if (code === 23) style.italic = false;
    else if (code === 24) style.underline = false;
    else if (code === 27) style.inverse = false;
    else if (code === 38 || code === 48) {
      const { name, used } = readExtended(codes.slice(at + 1));
      if (name) style[code === 38 ? "color" : "background"] = name;
      at += used;
    } else style = applyColor(style, code);
  }
  return style;
}

function applyColor(style: AnsiStyle, code: number): AnsiStyle {
  const { color: _, ...noColor } = style;
  const { background: __, ...noBackground } = style;
  if (code === 39) return noColor;
  if (code === 49) return noBackground;
  const name = NAMES[code % 10] ?? "";
  if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) return { ...style, color: name };
  if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) return { ...style, background: name };
  return style;
}

/** 256 colours and true colours, as the nearest of the eight that both themes have. */
function readExtended(rest: number[]): { name: string | undefined; used: number } {
  if (rest[0] === 5) return { name: nameIndexed(rest[1] ?? 0), used: 2 };
  if (rest[0] === 2) return { name: nameRgb(rest[1] ?? 0, rest[2] ?? 0, rest[3] ?? 0), used: 4 };
  return { name: undefined, used: rest.length };
}

function nameIndexed(index: number): string | undefined {
  if (index < 16) return NAMES[index % 8];
  if (index >= 232) return index < 244 ? "black" : "white";
  const cube = index - 16;
  return nameRgb(Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51);
}

function nameRgb(red: number, green: number, blue: number): string | undefined {
  const half = Math.max(red, green, blue) / 2;
  return NAMES[Number(red > half) + 2 * Number(green > half) + 4 * Number(blue > half)];
}
