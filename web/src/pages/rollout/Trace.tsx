/** The conversation of a rollout, step by step; or its model calls as they were sent. */
import { Link } from "@tanstack/react-router";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { isWhole, type RolloutAddress } from "#/api/rollouts";
import type { EventBrief, RolloutView } from "#/api/types";
import { useComments } from "#/comments/useComments";
import { commentWords } from "#/comments/words";
import { Button } from "#/design/Button";
import { EmptyState } from "#/design/EmptyState";
import { useHighlight } from "#/trace/highlightMatches";
import { StepCard } from "#/trace/StepCard";
import { StepList, type StepListHandle } from "#/trace/StepList";
import { estimateHeight, needsWindows } from "#/trace/steps";
import { useEvents } from "#/trace/useEvents";
import { words } from "#/words";
import { SentCalls } from "./SentCalls";
import styles from "./Trace.module.css";
import type { Steps } from "./useSteps";

type Props = {
  address: RolloutAddress;
  view: RolloutView;
  steps: Steps;
  /** Somebody wants to comment on a step. */
  onComment: (index: number) => void;
};

export function Trace(props: Props) {
  const { view, steps } = props;
  if (steps.view === "sent") return <SentCalls {...props} />;
  if (view.events.length === 0)
    return (
      <EmptyState title={words.rollout.noSteps}>
        <p>{words.rollout.noStepsHint}</p>
      </EmptyState>
    );
  if (steps.visible.length === 0) return <EmptyState icon="filter" title={words.rollout.allHidden} />;
  return <StepsOfTrace {...props} />;
}

function StepsOfTrace({ address, view, steps, onComment }: Props) {
  const { visible } = steps;
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<StepListHandle>(null);
  const [range, setRange] = useState({ first: 0, last: 0 });
  const wanted = new Set([...visible.slice(range.first, range.last + 1), steps.current]);
  const events = useEvents(address, wanted);
  const isWindowed = needsWindows(view.events) || !isWhole(view);
  const said = useCommentCounts(address);
  useStepInSight(steps, list, events.at(steps.current) !== undefined);
  useHighlight(box, steps.find.text, range.first, range.last, events.isLoading);
  return (
    <>
      {events.error && (
        <p className={styles.error} role="alert">
          {events.error.message}
          <Button small onClick={events.retry}>
            {words.retry}
          </Button>
        </p>
      )}
      <StepList
        label={words.rollout.conversation}
        count={visible.length}
        keyOf={(position) => visible[position] ?? position}
        prefix="m"
        estimate={(position) => {
          const brief = view.events[visible[position] ?? 0];
          return brief ? estimateHeight(brief) : 0;
        }}
        isWindowed={isWindowed}
        onRange={(first, last) => setRange({ first, last })}
        handle={list}
        box={box}
        renderStep={(position) => {
          const index = visible[position] ?? 0;
          const brief = view.events[index];
          if (!brief) return null;
          return (
            <StepCard
              address={address}
              brief={brief}
              content={events.at(index)}
              shown={steps.shown}
              isRaw={steps.view === "raw"}
              isCurrent={index === steps.current && steps.linked !== null}
              isFolded={steps.folded.has(index)}
              onFold={() => steps.toggleFold(index)}
              onSelect={() => steps.select(index)}
              link={
                <>
                  {said && <CommentButton count={said.get(index) ?? 0} onClick={() => onComment(index)} />}
                  <StepLink index={index} />
                </>
              }
              sentLink={<SentLink brief={brief} />}
            />
          );
        }}
      />
    </>
  );
}

/** Scrolls to the step in the address when that changes, and once more when its content has arrived. */
function useStepInSight(steps: Steps, list: React.RefObject<StepListHandle | null>, isLoaded: boolean): void {
  const { linked, position } = steps;
  const show = useEffectEvent(() => {
    if (linked !== null) list.current?.show(position);
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: they are the occasions, not inputs
  useEffect(() => {
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => show()); // what is near has its true height by then
    });
    return () => cancelAnimationFrame(frame);
  }, [linked, isLoaded]);
}

/** How many comments each step has; null where nobody comments. */
function useCommentCounts(address: RolloutAddress): ReadonlyMap<number, number> | null {
  const comments = useComments({ runId: address.runId, rollout: address });
  if (!comments.data) return null;
  const counts = new Map<number, number>();
  for (const { rollout, deleted_at } of comments.data) {
    const step = rollout?.step ?? null;
    if (step !== null && deleted_at === null) counts.set(step, (counts.get(step) ?? 0) + 1);
  }
  return counts;
}

function CommentButton({ count, onClick }: { count: number; onClick: () => void }) {
  return (
    <Button look="quiet" small onClick={onClick}>
      {count > 0 ? commentWords.ofStep(count) : commentWords.send}
    </Button>
  );
}

function StepLink({ index }: { index: number }) {
  return (
    <Link
      to="."
      search={(before) => before}
      hash={`m${index}`}
      replace
      resetScroll={false}
      hashScrollIntoView={false}
      title={words.rollout.linkTo}
      className={styles.link}
    >
      #{index}
    </Link>
  );
}

/** A judge is always sent messages of its own; that the evaluated model was is worth a word. */
function SentLink({ brief }: { brief: EventBrief }) {
  const isOther = brief.type === "message" && (brief.call?.altered ?? false);
  return (
    <Link
      to="."
      search={(before) => ({ ...before, view: "sent" as const })}
      hash={`m${brief.index}`}
      replace
      resetScroll={false}
      hashScrollIntoView={false}
      className={isOther ? styles.differs : styles.link}
    >
      {isOther ? words.rollout.sentDiffers : words.rollout.asSent}
    </Link>
  );
}
