/** Comments in the order they were written, each with a link to what it is about. */
import { Link, useLocation } from "@tanstack/react-router";
import type { RunComment } from "#/api/types";
import { Comment } from "./Comment";
import styles from "./comments.module.css";
import { commentWords as words } from "./words";

type Props = {
  runId: string;
  comments: readonly RunComment[];
  /** On a rollout's own page: how many steps it has. Elsewhere comments name their rollout. */
  steps?: number;
};

export function CommentList({ runId, comments, steps }: Props) {
  const hash = useLocation({ select: (location) => location.hash });
  const isLost = hash.startsWith("comment-") && !comments.some(({ id }) => id === hash);
  return (
    <>
      {isLost && <p className={styles.gone}>{words.deletedMeanwhile}</p>}
      {comments.length === 0 && <p className={styles.soft}>{words.none}</p>}
      <ol className={styles.list}>
        {comments.map((comment) => (
          <li key={comment.id}>
            <Comment
              runId={runId}
              comment={comment}
              about={<About runId={runId} comment={comment} steps={steps} />}
            />
          </li>
        ))}
      </ol>
    </>
  );
}

function About({ runId, comment, steps }: { runId: string; comment: RunComment; steps: number | undefined }) {
  const { rollout } = comment;
  if (!rollout) return null;
  const { key, number } = rollout;
  const step = rollout.step ?? null;
  const isHere = steps !== undefined;
  if (isHere && step === null) return null;
  const isGone = isHere && step !== null && step >= steps;
  if (isGone) return <span>{words.stepGone(step)}</span>;
  const name = step === null ? words.rollout(number) : words.stepLink(step);
  return (
    <Link
      to="/runs/$runId/t/$taskKey/$number"
      params={{ runId, taskKey: key, number: String(number) }}
      {...(step === null ? {} : { hash: `m${step}` })}
    >
      {isHere || step === null ? name : `${words.rollout(number)}, ${name}`}
    </Link>
  );
}
