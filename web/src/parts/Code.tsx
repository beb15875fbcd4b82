/** Code in colours, once the highlighter is there; the plain text before, and for languages it does not know. */
import { type ReactNode, useEffect, useState } from "react";
import { showControls } from "./ansiText";
import styles from "./Code.module.css";

export type CodeSpan = { text: string; tags: string };
type Highlight = (text: string, language: string) => CodeSpan[] | null;

const LONGEST = 50_000;
const LANGUAGES = /^(py(thon|3)?|json[lc5]?)$/i;

let loaded: Highlight | null = null;

export function Code({ text, language }: { text: string; language: string }): ReactNode {
  const [highlight, setHighlight] = useState<Highlight | null>(() => loaded);
  const isKnown = LANGUAGES.test(language) && text.length <= LONGEST;
  useEffect(() => {
    if (!isKnown || highlight) return;
    let isGone = false;
    void import("./highlight").then((module) => {
      loaded = module.highlightCode;
      if (!isGone) setHighlight(() => module.highlightCode);
    });
    return () => {
      isGone = true;
    };
  }, [isKnown, highlight]);
  const spans = isKnown && highlight ? highlight(text, language) : null;
  if (!spans) return showControls(text);
  return spans.map((span, index) => {
    const name = span.tags
      .split(" ")
      .map((tag) => styles[tag])
      .filter(Boolean)
      .join(" ");
    return name ? (
      <span key={index} className={name}>
        {showControls(span.text)}
      </span>
    ) : (
      showControls(span.text)
    );
  });
}
