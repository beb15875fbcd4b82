import { describe, expect, it } from "vitest";
import { parseAnsi, stripAnsi } from "./ansiText";

describe("terminal output", () => {
  it("keeps colours and weight as styles, across lines too", () => {
    const first = parseAnsi("\x1b[1;31mred\x1b[0m plain \x1b[38;5;46mgreen");
    expect(first.spans).toEqual([
      { text: "red", style: { bold: true, color: "red" } },
      { text: " plain ", style: {} },
      { text: "green", style: { color: "green" } },
    ]);
    expect(parseAnsi("still", first.style).spans[0]?.style).toEqual({ color: "green" });
    expect(parseAnsi("\x1b[38;2;250;10;10mx\x1b[39my").spans.map(({ style }) => style.color)).toEqual([
      "red",
      undefined,
    ]);
  });

  it("shows every other sequence instead of obeying it", () => {
    expect(stripAnsi("\x1b]8;;https://evil.example\x07click\x1b]8;;\x07")).toBe(
      "␛]8;;https://evil.example␇click␛]8;;␇",
    );
    expect(stripAnsi("a\x1b[2Jb\x1b[1A\rc\0")).toBe("a␛[2Jb␛[1A␍c␀");
    expect(stripAnsi("gpj.\u202eexe")).toBe("gpj.⟨U+202E⟩exe");
  });
});
