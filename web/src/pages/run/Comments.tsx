/** All comments on a run, those on its rollouts included. */
import { getRouteApi } from "@tanstack/react-router";
import { CommentList } from "#/comments/CommentList";
import styles from "#/comments/comments.module.css";
import { NewComment } from "#/comments/NewComment";
import { useComments } from "#/comments/useComments";
import { PageBody } from "#/design/Section";
import { Loaded } from "#/parts/Loaded";

const route = getRouteApi("/runs/$runId");

export function Comments() {
  const { runId } = route.useParams();
  const comments = useComments({ runId });
  return (
    <PageBody>
      <Loaded query={comments} lines={4}>
        {(found) => (
          <div className={styles.panel}>
            <CommentList runId={runId} comments={found} />
            <NewComment place={{ runId }} />
          </div>
        )}
      </Loaded>
    </PageBody>
  );
}
