/** What pages ask about runs, as queries: their keys are what the feed patches. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import type { DistributionQuery, RunListQuery, RunStatus } from "./types";

export const RUNS_KEY = ["runs"] as const;
export const runKey = (id: string) => ["run", id] as const;

export const RUN_STATUSES = [
  "pending",
  "running",
  "stopping",
  "finished",
  "failed",
  "stopped",
  "timed_out",
] as const;
export const isActive = (status: RunStatus): boolean => ["pending", "running", "stopping"].includes(status);

const PAGE = 200;
const STILL_READING_MS = 1_000;

export const runListQuery = (query: RunListQuery) =>
  infiniteQueryOptions({
    queryKey: [...RUNS_KEY, "list", query],
    queryFn: ({ pageParam, signal }) =>
      read(api.GET("/api/v1/runs", { params: { query: { limit: PAGE, ...query, ...pageParam } }, signal })),
    initialPageParam: {} as { cursor?: string },
    getNextPageParam: (last) => (last.next_cursor ? { cursor: last.next_cursor } : undefined),
    placeholderData: keepPreviousData,
  });

/** How many runs match now: while this grows beyond a list that is shown, there are new ones. */
export const runTotalQuery = (query: RunListQuery) =>
  queryOptions({
    queryKey: [...RUNS_KEY, "total", query],
    queryFn: async ({ signal }) =>
      (await read(api.GET("/api/v1/runs", { params: { query: { ...query, limit: 1 } }, signal }))).total,
  });

export const runFacetsQuery = (query: RunListQuery) =>
  queryOptions({
    queryKey: [...RUNS_KEY, "facets", query],
    queryFn: ({ signal }) => read(api.GET("/api/v1/runs/facets", { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: [...runKey(id), "info"],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: id } }, signal })),
  });

export const summaryQuery = (id: string) =>
  queryOptions({
    queryKey: [...runKey(id), "summary"],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/runs/{run_id}/summary", { params: { path: { run_id: id } }, signal })),
    placeholderData: keepPreviousData,
  });

export const distributionQuery = (id: string, query: DistributionQuery) =>
  queryOptions({
    queryKey: [...runKey(id), "distribution", query],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/runs/{run_id}/distribution", { params: { path: { run_id: id }, query }, signal }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.complete === false ? STILL_READING_MS : false),
  });
