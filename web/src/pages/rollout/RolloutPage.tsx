/** One rollout as a timeline: its outline, its conversation, and what the reward rests on. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { beginningQuery, isWhole, type RolloutAddress, writeAddress } from "#/api/rollouts";
import type { RolloutView } from "#/api/types";
import { useKeys } from "#/app/keys";
import { LoadError } from "#/app/PageError";
import { focusNewComment } from "#/comments/NewComment";
import { FullPage } from "#/design/Section";
import { Segmented } from "#/design/Segmented";
import { Skeleton } from "#/design/Skeleton";
import { words } from "#/words";
import { Details } from "./Details";
import { Outline } from "./Outline";
import { RolloutHeader } from "./RolloutHeader";
import styles from "./RolloutPage.module.css";
import { TimingBar } from "./TimingBar";
import { Toolbar } from "./Toolbar";
import { Trace } from "./Trace";
import { useRollout } from "./useRollout";
import { useAddress, useFilter, useRolloutNavigation } from "./useRolloutNavigation";
import { useSteps } from "./useSteps";

export function RolloutPage() {
  const address = useAddress();
  const rollout = useRollout(address, useFilter());
  const task = rollout.data ? String(rollout.data.entry.task) : address.taskKey;
  useEffect(() => {
    document.title = `${words.rollout.title(task, address.number)} · ${words.product}`;
  }, [task, address.number]);
  if (rollout.error) return <LoadError error={rollout.error} onRetry={rollout.retry} />;
  if (!rollout.data) return <Skeleton lines={8} />;
  return <Rollout key={writeAddress(address)} address={address} view={rollout.data} />;
}

const PARTS = ["trace", "outline", "details"] as const;

function Rollout({ address, view }: { address: RolloutAddress; view: RolloutView }) {
  const steps = useSteps(address, view.events);
  const [part, setPart] = useState<(typeof PARTS)[number]>("trace");
  useNeighbourKeys(address, view);
  return (
    <FullPage>
      <RolloutHeader address={address} view={view} />
      <TimingBar view={view} onStep={steps.select} />
      <div className={styles.tools}>
        <div className={styles.parts}>
          <Segmented
            label={words.rollout.parts.label}
            options={PARTS.map((value) => ({ value, label: words.rollout.parts[value] }))}
            value={part}
            onChange={setPart}
          />
        </div>
        <Toolbar steps={steps} isWhole={isWhole(view)} />
      </div>
      <div className={styles.columns} data-part={part}>
        <div className={styles.outline}>
          <Outline events={view.events} steps={steps} onChoose={() => setPart("trace")} />
        </div>
        <div className={styles.trace}>
          <Trace
            address={address}
            view={view}
            steps={steps}
            onComment={(index) => {
              steps.select(index);
              setPart("details");
              focusNewComment();
            }}
          />
        </div>
        <div className={styles.details}>
          <Details
            address={address}
            view={view}
            onStep={(index) => {
              steps.select(index);
              setPart("trace");
            }}
          />
        </div>
      </div>
    </FullPage>
  );
}

function useNeighbourKeys(address: RolloutAddress, { neighbours }: RolloutView): void {
  const { toNeighbour } = useRolloutNavigation();
  const filter = useFilter();
  const client = useQueryClient();
  const text = words.rollout.keys;
  useKeys([
    { keys: "[", label: text.previousRollout, run: () => toNeighbour(neighbours.previous_rollout) },
    { keys: "]", label: text.nextRollout, run: () => toNeighbour(neighbours.next_rollout) },
    { keys: "{", label: text.previousTask, run: () => toNeighbour(neighbours.previous_task) },
    { keys: "}", label: text.nextTask, run: () => toNeighbour(neighbours.next_task) },
  ]);
  const { runId } = address;
  const [nextKey, nextNumber] = neighbours.next_rollout ?? [];
  useEffect(() => {
    if (nextKey === undefined || nextNumber === undefined) return;
    const next = { runId, taskKey: String(nextKey), number: Number(nextNumber) };
    void client.prefetchQuery(beginningQuery(next, filter)); // the reader is probably on the way there
  }, [client, runId, nextKey, nextNumber, filter]);
}
