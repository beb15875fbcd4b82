/** What the wizard asks: an environment and its versions, models, a check and an estimate; and the start. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, isAway, read } from "./client";
import type { NewRun, RunInfo } from "./types";

const AGAIN_MS = 3_000;

export const environmentListQuery = (search: string) =>
  queryOptions({
    queryKey: ["startRun", "environments", search],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/environments", {
          params: { query: { limit: 100, ...(search ? { search } : {}) } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });

const slugPath = (slug: string) => {
  const [owner = "", name = ""] = slug.split("/");
  return { owner, name };
};

export const runnableQuery = (slug: string) =>
  queryOptions({
    queryKey: ["startRun", "environment", slug],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/environments/{owner}/{name}", { params: { path: slugPath(slug) }, signal })),
  });

export const versionListQuery = (slug: string) =>
  queryOptions({
    queryKey: ["startRun", "versions", slug],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/environments/{owner}/{name}/versions", {
          params: { path: slugPath(slug) },
          signal,
        }),
      ),
  });

/** One version, with what its check learned of it. */
export const versionQuery = (slug: string, version: string) =>
  queryOptions({
    queryKey: ["startRun", "version", slug, version],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/environments/{owner}/{name}/versions/{version}", {
          params: { path: { ...slugPath(slug), version } },
          signal,
        }),
      ),
  });

export const modelListQuery = (slug: string) =>
  queryOptions({
    queryKey: ["startRun", "models", slug],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/models", { params: { query: { environment: slug } }, signal })),
  });

/** The key must differ where the secrets do, and must not hold them. */
export const runCheckQuery = (body: NewRun, key: string) =>
  queryOptions({
    queryKey: ["startRun", "check", key],
    queryFn: ({ signal }) => read(api.POST("/api/v1/runs/check", { body, signal })),
    placeholderData: keepPreviousData,
    staleTime: 0,
    gcTime: 0,
    refetchInterval: ({ state }) => (isAway(state.error) ? AGAIN_MS : false),
  });

export const estimateQuery = (body: NewRun, key: string) =>
  queryOptions({
    queryKey: ["startRun", "estimate", key],
    queryFn: ({ signal }) => read(api.POST("/api/v1/runs/estimate", { body, signal })),
    placeholderData: keepPreviousData,
    staleTime: 0,
  });

export const startRun = (body: NewRun, key: string): Promise<RunInfo> =>
  read(api.POST("/api/v1/runs", { body, params: { header: { "Idempotency-Key": key } } }));
