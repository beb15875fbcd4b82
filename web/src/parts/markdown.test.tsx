import { act } from "react";
import { createRoot } from "react-dom/client";
import { describe, expect, it } from "vitest";
import { highlightCode } from "./highlight";
import { Markdown } from "./Markdown";
import { lexMarkdown, safeHref } from "./markdownTokens";

async function render(text: string): Promise<HTMLElement> {
  const element = document.createElement("div");
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  await act(async () => createRoot(element).render(<Markdown text={text} />));
  return element;
}

describe("Markdown", () => {
  it("becomes elements", async () => {
    const page = await render("# Title\n\n- one\n- **two**\n\n| a |\n|---|\n| 1 |\n\n`x`");
    expect(page.querySelector("h3")?.textContent).toBe("Title");
    expect([...page.querySelectorAll("li")].map((item) => item.textContent)).toEqual(["one", "two"]);
    expect(page.querySelector("td")?.textContent).toBe("1");
  });

  it("shows hostile content as the text it is", async () => {
    const page = await render(
      "<img src=x onerror=alert(1)>\n\nhi <b>there</b> [x](javascript:alert(1)) ![pixel](https://evil.example/a.png)\n\n<script>alert(1)</script>\n\n[ok](https://example.com/)",
    );
    expect(page.querySelectorAll("img, script, b, iframe")).toHaveLength(0);
    expect([...page.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual([
      "https://example.com/",
    ]);
    expect(page.textContent).toContain("<script>alert(1)</script>");
    expect(page.textContent).toContain("https://evil.example/a.png");
  });

  it("takes only explicit marks for formulas", () => {
    const kinds = (text: string) => JSON.stringify(lexMarkdown(text)).match(/"type":"math"/g)?.length ?? 0;
    expect(kinds("It costs $5.00 or $6.00.")).toBe(0);
    expect(kinds("so \\(x^2\\) and\n\n$$y = x$$\n\n\\[z\\]")).toBe(3);
  });

  it("opens only safe addresses", () => {
    expect(["javascript:alert(1)", "data:text/html,x", "/relative", "JaVaScRiPt:x"].map(safeHref)).toEqual([
      null,
      null,
      null,
      null,
    ]);
    expect(safeHref("https://example.com/a")).toBe("https://example.com/a");
  });
});

describe("code", () => {
  it("is coloured without losing a character", () => {
    const text = 'def f(x):\n    return "a" + 1  # note\n';
    const spans = highlightCode(text, "python") ?? [];
    expect(spans.map((span) => span.text).join("")).toBe(text);
    expect(spans.find((span) => span.text === "def")?.tags).toContain("tok-keyword");
    expect(highlightCode("x", "cobol")).toBeNull();
  });
});
