/** A model call as it was sent: its messages, tools and sampling, and the reply; one call at a time. */
import { useQuery } from "@tanstack/react-query";
import { type RolloutAddress, sentCallQuery } from "#/api/rollouts";
import type { EventBrief, RolloutView, SentCall } from "#/api/types";
import { IconButton } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { EmptyState } from "#/design/EmptyState";
import { showControls } from "#/parts/ansiText";
import { Loaded } from "#/parts/Loaded";
import { TextView } from "#/parts/TextView";
import { writeJson } from "#/trace/json";
import { words } from "#/words";
import styles from "./SentCalls.module.css";
import type { Steps } from "./useSteps";

type Props = { address: RolloutAddress; view: RolloutView; steps: Steps };

export function SentCalls({ address, view, steps }: Props) {
  const calling = view.events.filter((event) => event.call !== null);
  const place = findCall(calling, steps.current);
  const event = calling[place];
  if (!event?.call)
    return (
      <EmptyState title={words.rollout.noCalls}>
        <p>{words.rollout.noCallsHint}</p>
      </EmptyState>
    );
  const go = (step: number) => {
    const next = calling[place + step];
    if (next) steps.select(next.index);
  };
  return (
    <section className={styles.sent} aria-label={words.rollout.views.sent}>
      <header className={styles.head}>
        <IconButton label={words.rollout.previousCall} icon="arrowLeft" onClick={() => go(-1)} />
        <span>{words.rollout.callOf(place + 1, calling.length)}</span>
        <IconButton label={words.rollout.nextCall} icon="arrowRight" onClick={() => go(1)} />
        <span className={styles.note}>
          {showControls(event.call.role)} · {showControls(event.call.model)}
        </span>
        {event.call.altered && <span className={styles.note}>{words.rollout.altered}</span>}
      </header>
      <SentText address={address} index={event.call.index} />
    </section>
  );
}

function SentText({ address, index }: { address: RolloutAddress; index: number }) {
  const call = useQuery(sentCallQuery(address, index));
  return (
    <Loaded query={call} lines={12}>
      {(data) => {
        const text = writeCall(data);
        return (
          <TextView
            key={index}
            text={text}
            label={words.rollout.views.sent}
            wrap
            actions={<CopyButton text={text} />}
          />
        );
      }}
    </Loaded>
  );
}

const writeCall = ({ model, messages, tools, sampling, reply, error }: SentCall): string =>
  writeJson({
    model,
    messages,
    ...(tools.length > 0 && { tools }),
    ...sampling,
    reply,
    ...(error && { error }),
  });

/** The call at a step, or the last one before it. */
function findCall(calling: readonly EventBrief[], step: number): number {
  const after = calling.findIndex((event) => event.index > step);
  return Math.max(0, (after < 0 ? calling.length : after) - 1);
}
