/** Comments on a run and on its rollouts. Their keys are the run's: the feed asks for them again. */
import { queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import type { RolloutAddress } from "./rollouts";
import { runKey } from "./runs";
import type { RunComment } from "./types";

export type CommentPlace = { runId: string; rollout?: RolloutAddress };

const MOST_PAGES = 20;
const PAGE = 1_000;

/** All comments on a run, or those on one of its rollouts, the oldest first. */
export const commentsQuery = ({ runId, rollout }: CommentPlace) =>
  queryOptions({
    queryKey: [...runKey(runId), "comments", rollout ? [rollout.taskKey, rollout.number] : null],
    queryFn: async ({ signal }) => {
      const about = rollout ? { key: rollout.taskKey, number: rollout.number } : {};
      const found: RunComment[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < MOST_PAGES; page++) {
        const answer: { items: RunComment[]; next_cursor: string | null } = await read(
          api.GET("/api/v1/runs/{run_id}/comments", {
            params: {
              path: { run_id: runId },
              query: { limit: PAGE, ...about, ...(cursor ? { cursor } : {}) },
            },
            signal,
          }),
        );
        found.push(...answer.items);
        cursor = answer.next_cursor;
        if (cursor === null) break;
      }
      return found;
    },
  });

export const addComment = (place: CommentPlace, step: number | null, text: string, key: string) =>
  read(
    api.POST("/api/v1/runs/{run_id}/comments", {
      params: { path: { run_id: place.runId } },
      headers: { "Idempotency-Key": key },
      body: {
        text,
        ...(place.rollout
          ? { rollout: { key: place.rollout.taskKey, number: place.rollout.number, step } }
          : {}),
      },
    }),
  );

export const editComment = (runId: string, id: string, text: string) =>
  read(
    api.PATCH("/api/v1/runs/{run_id}/comments/{comment_id}", {
      params: { path: { run_id: runId, comment_id: id } },
      body: { text },
    }),
  );

export const deleteComment = (runId: string, id: string) =>
  read(
    api.DELETE("/api/v1/runs/{run_id}/comments/{comment_id}", {
      params: { path: { run_id: runId, comment_id: id } },
    }),
  );
