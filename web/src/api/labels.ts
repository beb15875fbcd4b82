/** What people say of a run's rollouts. The feed announces new labels, so these share a key of their own. */
import { queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import { runKey } from "./runs";
import type { AgreementQuery, NewLabel } from "./types";

export const labelsKey = (id: string) => [...runKey(id), "labels"] as const;

/** The next rollouts for a person, with what they have labelled already if everything is wanted. */
export const labellingQuery = (id: string, person: string | undefined) =>
  queryOptions({
    queryKey: [...labelsKey(id), "queue", person ?? ""],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/runs/{run_id}/labelling", {
          params: { path: { run_id: id }, query: { limit: QUEUE, ...(person ? { person } : {}) } },
          signal,
        }),
      ),
  });

export const blindRolloutQuery = (id: string, key: string, number: number) =>
  queryOptions({
    queryKey: ["blind", id, key, number],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/runs/{run_id}/rollouts/{key}/{number}/blind", {
          params: { path: { run_id: id, key, number: String(number) } },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const agreementQuery = (id: string, query: AgreementQuery) =>
  queryOptions({
    queryKey: [...labelsKey(id), "agreement", query],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/runs/{run_id}/agreement", { params: { path: { run_id: id }, query }, signal })),
    retry: false,
  });

export const giveLabel = (id: string, label: NewLabel, key: string) =>
  read(
    api.POST("/api/v1/runs/{run_id}/labels", {
      params: { path: { run_id: id } },
      headers: { "Idempotency-Key": key },
      body: { labels: [label] },
    }),
  );

const QUEUE = 50;
