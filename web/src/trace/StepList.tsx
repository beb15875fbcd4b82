/**
 * The steps of a trace, one below the other. A short trace is in the page as a whole, so that the browser's own
 * search, copying and printing see all of it; of a long one only what is near the reader.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, type Ref, type RefObject, useImperativeHandle } from "react";
import { classes } from "#/design/classes";
import { useRange } from "#/parts/useRange";
import styles from "./StepList.module.css";

export type StepListHandle = { show: (position: number) => void };

type Props = {
  label: string;
  count: number;
  /** What stays the same for a step while others are shown or hidden. */
  keyOf: (position: number) => number;
  /** The letter before the key in the step's address. */
  prefix: string;
  estimate: (position: number) => number;
  isWindowed: boolean;
  renderStep: (position: number) => ReactNode;
  /** Called with the steps that are in the page. */
  onRange: (first: number, last: number) => void;
  handle: Ref<StepListHandle>;
  box: RefObject<HTMLDivElement | null>;
  /** Two traces beside each other need all the room there is. */
  isWide?: boolean;
};

const NEAR = 2;
const GAP = 12;

export function StepList(props: Props) {
  return props.isWindowed ? <WindowedSteps {...props} /> : <PlainSteps {...props} />;
}

function PlainSteps({
  label,
  count,
  keyOf,
  prefix,
  renderStep,
  onRange,
  handle,
  box,
  isWide = false,
}: Props) {
  useRange(0, count - 1, onRange);
  useImperativeHandle(handle, () => ({
    show(position) {
      const step = document.getElementById(`${prefix}${keyOf(position)}`);
      if (step && box.current && !isInSight(step, box.current)) step.scrollIntoView({ block: "start" });
    },
  }));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <div ref={box} className={styles.box} role="region" aria-label={label} tabIndex={0}>
      <ol className={classes(styles.list, isWide && styles.wide)}>
        {Array.from({ length: count }, (_, position) => (
          <li key={keyOf(position)} id={`${prefix}${keyOf(position)}`} className={styles.plain}>
            {renderStep(position)}
          </li>
        ))}
      </ol>
    </div>
  );
}

function WindowedSteps(props: Props) {
  const { label, count, keyOf, prefix, estimate, renderStep, onRange, handle, box, isWide = false } = props;
  const steps = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: estimate,
    getItemKey: keyOf,
    overscan: NEAR,
    gap: GAP,
    scrollPaddingStart: GAP,
  });
  const visible = steps.getVirtualItems();
  useRange(visible[0]?.index ?? 0, visible.at(-1)?.index ?? 0, onRange);
  useImperativeHandle(handle, () => ({
    show(position) {
      const step = document.getElementById(`${prefix}${keyOf(position)}`);
      if (step && box.current && isInSight(step, box.current)) return;
      steps.scrollToIndex(position, { align: "start" });
    },
  }));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <div ref={box} className={styles.box} role="region" aria-label={label} tabIndex={0}>
      <ol className={classes(styles.space, isWide && styles.wide)} style={{ height: steps.getTotalSize() }}>
        {visible.map((item) => (
          <li
            key={item.key}
            id={`${prefix}${keyOf(item.index)}`}
            data-index={item.index}
            ref={steps.measureElement}
            aria-setsize={count}
            aria-posinset={item.index + 1}
            className={styles.placed}
            style={{ transform: `translateY(${item.start}px)` }}
          >
            {renderStep(item.index)}
          </li>
        ))}
      </ol>
    </div>
  );
}

/** All of it is in the box, or its beginning in the upper part, where the reader looks. */
function isInSight(step: Element, box: Element): boolean {
  const { top, height } = box.getBoundingClientRect();
  const place = step.getBoundingClientRect();
  const at = place.top - top;
  return at >= 0 && (at < height / 3 || place.bottom - top <= height);
}
