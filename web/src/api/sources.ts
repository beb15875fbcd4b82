/** What pages ask about sources. The feed refreshes everything below `SOURCES_KEY`. */
import { queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import type { components } from "./schema";

type Schemas = components["schemas"];
export type SourceInfo = Schemas["SourceInfo"];
export type SourceCommit = Schemas["SourceCommit"];
export type SourceRecipe = Schemas["SourceRecipe"];
export type SourceSync = Schemas["SourceSync"];
export type NewSource = Schemas["NewSource"];
export type AddedSource = Schemas["AddedSource"];
export type NewSubmission = Schemas["NewSubmission"];
export type SubmissionPreview = Schemas["SubmissionPreview"];
export type SelectedRows = Schemas["SelectedRows"];

/** Named as the feed names the kind of its events. */
export const SOURCES_KEY = ["source"] as const;

export const sourceListQuery = queryOptions({
  queryKey: [...SOURCES_KEY, "list"],
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/sources", { signal }))).items,
});

const pathOf = (source_id: string) => ({ path: { source_id } });

export const sourceQuery = (id: string) =>
  queryOptions({
    queryKey: [...SOURCES_KEY, id, "info"],
    queryFn: ({ signal }) => read(api.GET("/api/v1/sources/{source_id}", { params: pathOf(id), signal })),
  });

export const sourceSyncsQuery = (id: string) =>
  queryOptions({
    queryKey: [...SOURCES_KEY, id, "syncs"],
    queryFn: async ({ signal }) =>
      (await read(api.GET("/api/v1/sources/{source_id}/syncs", { params: pathOf(id), signal }))).items,
  });

export const sourceCommitsQuery = (id: string) =>
  queryOptions({
    queryKey: [...SOURCES_KEY, id, "commits"],
    queryFn: async ({ signal }) =>
      (await read(api.GET("/api/v1/sources/{source_id}/commits", { params: pathOf(id), signal }))).items,
  });

/** A commit never changes, so it is asked for once. */
export const sourceContentQuery = (id: string, commit: string) =>
  queryOptions({
    queryKey: ["source-content", id, commit],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/sources/{source_id}/commits/{commit_sha}", {
          params: { path: { source_id: id, commit_sha: commit } },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
    enabled: commit !== "",
    retry: false,
  });
