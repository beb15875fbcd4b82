/** The steps of two rollouts beside each other; what is the same is folded to a line. */
import { Link } from "@tanstack/react-router";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import type { DiffPair, EventBrief, RolloutDiff } from "#/api/types";
import { Badge } from "#/design/Badge";
import { Button } from "#/design/Button";
import { classes } from "#/design/classes";
import { Icon } from "#/design/Icon";
import { StepCard } from "#/trace/StepCard";
import { StepList, type StepListHandle } from "#/trace/StepList";
import { estimateHeight, needsWindows, SHOWN_KINDS } from "#/trace/steps";
import { type LoadedEvents, useEvents } from "#/trace/useEvents";
import { words } from "#/words";
import type { Sides } from "./DiffPage";
import styles from "./Pairs.module.css";
import { useDifferenceMarks } from "./useDifferenceMarks";
import type { PairsState } from "./usePairs";

type Props = { diff: RolloutDiff; sides: Sides; pairs: PairsState };

const FOLDED_HEIGHT = 90;
const ALL = new Set(SHOWN_KINDS);

export function Pairs({ diff, sides, pairs }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<StepListHandle>(null);
  const [range, setRange] = useState({ first: 0, last: 0 });
  const near = [...diff.pairs.slice(range.first, range.last + 1), diff.pairs[pairs.current]];
  const wanted = (side: "a" | "b") => near.flatMap((pair) => pair?.[side] ?? []);
  const events = { a: useEvents(sides.a, wanted("a")), b: useEvents(sides.b, wanted("b")) };
  usePairInSight(pairs, list, !events.a.isLoading && !events.b.isLoading);
  const error = events.a.error ?? events.b.error;
  const retry = () => {
    events.a.retry();
    events.b.retry();
  };
  return (
    <>
      {error && (
        <p className={styles.error} role="alert">
          {error.message}
          <Button small onClick={retry}>
            {words.retry}
          </Button>
        </p>
      )}
      <StepList
        label={words.diff.pairs}
        count={diff.pairs.length}
        keyOf={(position) => position}
        prefix="p"
        estimate={(position) => estimatePair(diff, position, pairs.isFolded(position))}
        isWindowed={needsWindows([...diff.a.events, ...diff.b.events])}
        onRange={(first, last) => setRange({ first, last })}
        handle={list}
        box={box}
        isWide
        renderStep={(position) => (
          <PairRow diff={diff} sides={sides} pairs={pairs} events={events} position={position} />
        )}
      />
    </>
  );
}

const briefOf = (diff: RolloutDiff, side: "a" | "b", pair: DiffPair | undefined): EventBrief | undefined => {
  const index = pair?.[side];
  return index === null || index === undefined ? undefined : diff[side].events[index];
};

function estimatePair(diff: RolloutDiff, position: number, isFolded: boolean): number {
  if (isFolded) return FOLDED_HEIGHT;
  const pair = diff.pairs[position];
  const [a, b] = [briefOf(diff, "a", pair), briefOf(diff, "b", pair)];
  return 32 + 1.4 * Math.max(a ? estimateHeight(a) : 0, b ? estimateHeight(b) : 0);
}

type RowProps = Props & { events: { a: LoadedEvents; b: LoadedEvents }; position: number };

function PairRow({ diff, sides, pairs, events, position }: RowProps) {
  const pair = diff.pairs[position];
  const row = useRef<HTMLDivElement>(null);
  const isFolded = pairs.isFolded(position);
  const isLoaded = (["a", "b"] as const).every(
    (side) => pair?.[side] == null || events[side].at(pair[side]) !== undefined,
  );
  const isMarked = pair !== undefined && pair.differences.length > 0 && pair.a !== null && pair.b !== null;
  useDifferenceMarks(row, isMarked && isLoaded && !isFolded, pairs.isRaw);
  if (!pair) return null;
  return (
    <div
      ref={row}
      className={classes(
        styles.pair,
        position === diff.first && styles.first,
        position === pairs.current && styles.current,
      )}
    >
      <PairHead pair={pair} position={position} isFirst={position === diff.first} />
      {(["a", "b"] as const).map((side) => {
        const brief = briefOf(diff, side, pair);
        if (!brief)
          return (
            <p key={side} className={styles.absent}>
              {words.diff.absent}
            </p>
          );
        return (
          <div key={side} data-side={side}>
            <StepCard
              address={sides[side]}
              brief={brief}
              content={events[side].at(brief.index)}
              shown={ALL}
              isRaw={pairs.isRaw}
              isCurrent={position === pairs.current}
              isFolded={isFolded}
              onFold={() => pairs.toggle(position)}
              onSelect={() => pairs.select(position)}
              link={<StepInRollout side={side} sides={sides} index={brief.index} />}
            />
          </div>
        );
      })}
    </div>
  );
}

function PairHead({ pair, position, isFirst }: { pair: DiffPair; position: number; isFirst: boolean }) {
  return (
    <header className={styles.head}>
      <Link
        to="."
        search={(before) => before}
        hash={`p${position}`}
        replace
        resetScroll={false}
        hashScrollIntoView={false}
        title={words.diff.linkTo}
        className={styles.link}
      >
        {words.diff.pair(position)}
      </Link>
      {isFirst && (
        <Badge tone="accent" icon="arrowDown">
          {words.diff.first}
        </Badge>
      )}
      {pair.differences.map((kind) => (
        <Badge key={kind} tone="warn" icon="compare">
          {words.diff.kinds[kind] ?? kind}
        </Badge>
      ))}
      {pair.differences.length === 0 && (
        <span className={styles.same}>
          <Icon name="check" size={12} /> {words.diff.identical}
        </span>
      )}
    </header>
  );
}

function StepInRollout({ side, sides, index }: { side: "a" | "b"; sides: Sides; index: number }) {
  const { runId, taskKey, number } = sides[side];
  return (
    <Link
      to="/runs/$runId/t/$taskKey/$number"
      params={{ runId, taskKey, number: String(number) }}
      hash={`m${index}`}
      className={styles.link}
    >
      #{index}
    </Link>
  );
}

function usePairInSight(
  pairs: PairsState,
  list: React.RefObject<StepListHandle | null>,
  isLoaded: boolean,
): void {
  const show = useEffectEvent(() => {
    if (pairs.linked || pairs.differing.length > 0) list.current?.show(pairs.current);
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: they are the occasions, not inputs
  useEffect(() => {
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => show()); // what is near has its true height by then
    });
    return () => cancelAnimationFrame(frame);
  }, [pairs.current, isLoaded]);
}
