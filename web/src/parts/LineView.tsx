/** Any number of lines, of which only the visible ones are in the page: logs, raw JSON, diffs, long texts. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, type Ref, useImperativeHandle, useRef } from "react";
import type { Tone } from "#/design/Badge";
import { classes } from "#/design/classes";
import styles from "./LineView.module.css";
import { cutAtMatches } from "./lines";
import { useRange } from "./useRange";

export type Line = {
  /** What stands before it: its number, or a time. */
  label?: ReactNode;
  content: ReactNode;
  tone?: Tone | undefined;
  isMarked?: boolean;
  /** For `#L12`. */
  id?: string;
};

export type LineViewHandle = { scrollTo: (index: number, align?: "start" | "center" | "end") => void };

type Props = {
  count: number;
  lineAt: (index: number) => Line;
  label: string;
  /** Wrapped lines are measured as they appear; unwrapped ones scroll sideways together. */
  wrap?: boolean;
  /** How many lines of the screen a wrapped line may take, before it is measured. */
  linesOf?: (index: number) => number;
  /** Called with the visible lines, to load more at either end. */
  onRange?: (first: number, last: number) => void;
  handle?: Ref<LineViewHandle>;
  /**
   * What a line is known by. With it, lines that are added above leave what is read in its place, and lines
   * that are added below stay in sight as long as the reader is at the end.
   */
  keyAt?: (index: number) => string | number;
  /** The line that is in sight at first. */
  startAt?: number | undefined;
};

const LINE_HEIGHT = 20;
const AT_END = 40;
const ABOVE_START = 12;

export function LineView({
  count,
  lineAt,
  label,
  wrap = false,
  linesOf,
  onRange,
  handle,
  keyAt,
  startAt = 0,
}: Props) {
  const box = useRef<HTMLDivElement>(null);
  const lines = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: (index) => LINE_HEIGHT * Math.max(1, linesOf?.(index) ?? 1),
    overscan: 30,
    initialOffset: Math.max(0, (startAt - ABOVE_START) * LINE_HEIGHT),
    ...(keyAt
      ? { getItemKey: keyAt, anchorTo: "end", followOnAppend: true, scrollEndThreshold: AT_END }
      : {}),
  });
  const visible = lines.getVirtualItems();
  useImperativeHandle(handle, () => ({
    scrollTo: (index, align = "center") => lines.scrollToIndex(index, { align }),
  }));
  useRange(visible[0]?.index ?? 0, visible.at(-1)?.index ?? -1, onRange);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <div ref={box} className={styles.box} tabIndex={0} role="region" aria-label={label}>
      <div className={styles.space} style={{ height: lines.getTotalSize() }}>
        <div className={styles.window} style={{ transform: `translateY(${visible[0]?.start ?? 0}px)` }}>
          {visible.map((item) => {
            const line = lineAt(item.index);
            return (
              <div
                key={item.key}
                data-index={item.index}
                ref={wrap ? lines.measureElement : undefined}
                id={line.id}
                className={classes(
                  styles.line,
                  wrap && styles.wrap,
                  line.tone && styles[line.tone],
                  line.isMarked && styles.marked,
                )}
              >
                {line.label !== undefined && <span className={styles.label}>{line.label}</span>}
                <code className={styles.content}>{line.content}</code>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** A text with what was searched for marked in it. */
export function Marked({ text, search }: { text: string; search: string }) {
  const parts = cutAtMatches(text, search);
  if (parts.length === 1) return text;
  return parts.map((part, index) => (index % 2 === 1 ? <mark key={index}>{part}</mark> : part));
}
