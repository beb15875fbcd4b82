/** Writes a comment on a run, a rollout, or the step of it that the address names. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { refuseAll, useSession } from "#/actions/rights";
import { useChange } from "#/api/change";
import { addComment, type CommentPlace } from "#/api/comments";
import { writeAddress } from "#/api/rollouts";
import { runKey } from "#/api/runs";
import type { RunComment } from "#/api/types";
import { Select } from "#/design/Select";
import { CommentForm } from "./CommentForm";
import styles from "./comments.module.css";
import { useDraft } from "./draft";
import { commentWords as words } from "./words";

type About = "whole" | "step";

const FIELD = "new-comment";

/** Once the page has been drawn: the field may be in a part that was hidden. */
export const focusNewComment = (): void => {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`#${FIELD} textarea`)?.focus()),
  );
};

export function NewComment({ place, step = null }: { place: CommentPlace; step?: number | null }) {
  const session = useSession();
  const [about, setAbout] = useState<About>("step");
  const [text, setText] = useDraft(place.rollout ? writeAddress(place.rollout) : place.runId);
  const add = useChange<string, RunComment>({
    send: (said, key) => addComment(place, about === "step" ? step : null, said, key),
    refresh: [[...runKey(place.runId), "comments"]],
    onDone: () => setText(""),
  });
  if (!session?.user)
    return (
      <p className={styles.soft}>
        <Link to="/login">{words.logIn}</Link>
      </p>
    );
  const refusal = refuseAll(session);
  if (refusal) return <p className={styles.soft}>{refusal}</p>;
  return (
    <CommentForm id={FIELD} text={text} onText={setText} change={add} action={words.send}>
      {step !== null && (
        <Select
          label={words.about}
          value={about}
          onChange={setAbout}
          options={[
            { value: "step", label: words.step(step) },
            { value: "whole", label: words.whole },
          ]}
        />
      )}
    </CommentForm>
  );
}
