/** A run's log: pages of it in either direction. They look after themselves, so the feed leaves them alone. */
import { queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import { runKey } from "./runs";
import type { LogQuery } from "./types";

export const fetchLog = (id: string, query: LogQuery, signal?: AbortSignal) =>
  read(
    api.GET("/api/v1/runs/{run_id}/log", {
      params: { path: { run_id: id }, query },
      ...(signal ? { signal } : {}),
    }),
  );

export const logQuery = (id: string, query: LogQuery) =>
  queryOptions({
    queryKey: [...runKey(id), "log", query],
    queryFn: ({ signal }) => fetchLog(id, query, signal),
    meta: { live: false },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
