/** What pages ask about the rollouts of a run: a page of them, of its tasks, and its failures by cause. */
import { queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import { runKey } from "./runs";
import type { RolloutQuery, TaskQuery } from "./types";

type Window = { offset: number; limit: number };

export const rolloutsKey = (id: string, query: RolloutQuery) => [...runKey(id), "rollouts", query] as const;

export const fetchRollouts = (id: string, query: RolloutQuery & Window, signal: AbortSignal) =>
  read(api.GET("/api/v1/runs/{run_id}/rollouts", { params: { path: { run_id: id }, query }, signal }));

export const tasksKey = (id: string, query: TaskQuery) => [...runKey(id), "tasks", query] as const;

export const fetchTasks = (id: string, query: TaskQuery & Window, signal: AbortSignal) =>
  read(api.GET("/api/v1/runs/{run_id}/tasks", { params: { path: { run_id: id }, query }, signal }));

export const failuresQuery = (id: string) =>
  queryOptions({
    queryKey: [...runKey(id), "failures"],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/runs/{run_id}/failures", { params: { path: { run_id: id } }, signal })),
  });
