/** The steps of a rollout in one line each, to see its shape and to jump. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import type { EventBrief } from "#/api/types";
import { classes } from "#/design/classes";
import { Icon, type IconName } from "#/design/Icon";
import { describe, nameRole } from "#/trace/StepCard";
import { hasFailed } from "#/trace/steps";
import { words } from "#/words";
import styles from "./Outline.module.css";
import type { Steps } from "./useSteps";

const LINE_HEIGHT = 44;

type Props = { events: readonly EventBrief[]; steps: Steps; onChoose: () => void };

export function Outline({ events, steps, onChoose }: Props) {
  const { visible, position } = steps;
  const box = useRef<HTMLDivElement>(null);
  const lines = useVirtualizer({
    count: visible.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 10,
  });
  useEffect(() => {
    lines.scrollToIndex(position, { align: "auto" });
  }, [lines, position]);
  return (
    <nav ref={box} className={styles.box} aria-label={words.rollout.outline}>
      <ol className={styles.space} style={{ height: lines.getTotalSize() }}>
        {lines.getVirtualItems().map((item) => {
          const brief = events[visible[item.index] ?? 0];
          if (!brief) return null;
          return (
            <li
              key={item.key}
              className={styles.place}
              style={{ transform: `translateY(${item.start}px)` }}
              aria-setsize={visible.length}
              aria-posinset={item.index + 1}
            >
              <OutlineLine
                brief={brief}
                isCurrent={item.index === position}
                onClick={() => {
                  steps.select(brief.index);
                  onChoose();
                }}
              />
            </li>
          );
        })}
      </ol>
    </nav>
  );
}

function OutlineLine(props: { brief: EventBrief; isCurrent: boolean; onClick: () => void }) {
  const { brief, isCurrent, onClick } = props;
  const tools = brief.tools.map((tool) => tool.name).join(", ");
  return (
    <button
      type="button"
      className={classes(styles.line, isCurrent && styles.current)}
      aria-current={isCurrent ? "step" : undefined}
      onClick={onClick}
    >
      <span className={styles.icon}>
        <Icon name={hasFailed(brief) ? "xCircle" : iconOf(brief)} size={14} />
      </span>
      <span className={styles.role}>
        {nameRole(brief)}
        {tools && <span className={styles.tools}>{tools}</span>}
      </span>
      <span className={styles.preview}>{describe(brief)}</span>
    </button>
  );
}

const ICONS: Record<string, IconName> = {
  system: "key",
  developer: "key",
  user: "person",
  assistant: "terminal",
  tool: "wrench",
};
const iconOf = (brief: EventBrief): IconName =>
  brief.tools.length > 0 ? "wrench" : (ICONS[brief.role] ?? "checkCircle");
