/** What people say of this rollout, and of its steps. */

import type { RolloutAddress } from "#/api/rollouts";
import type { RolloutView } from "#/api/types";
import { CommentList } from "#/comments/CommentList";
import styles from "#/comments/comments.module.css";
import { NewComment } from "#/comments/NewComment";
import { useComments } from "#/comments/useComments";
import { commentWords } from "#/comments/words";
import { Loaded } from "#/parts/Loaded";
import { Part } from "./Details";
import { useStepInAddress } from "./useRolloutNavigation";

export function RolloutComments({ address, view }: { address: RolloutAddress; view: RolloutView }) {
  const place = { runId: address.runId, rollout: address };
  const comments = useComments(place);
  const step = useStepInAddress();
  if (comments.fetchStatus === "idle" && comments.isPending) return null; // nobody comments here
  const steps = view.total_events;
  return (
    <Part title={commentWords.title}>
      <Loaded query={comments} lines={2}>
        {(found) => (
          <div className={styles.panel}>
            <CommentList runId={address.runId} comments={found} steps={steps} />
            <NewComment place={place} step={step !== null && step < steps ? step : null} />
          </div>
        )}
      </Loaded>
    </Part>
  );
}
