/** What pages ask about datasets. The feed refreshes everything below `DATASETS_KEY`. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import type { components } from "./schema";

type Schemas = components["schemas"];
export type DatasetInfo = Schemas["DatasetInfo"];
export type DatasetVersion = Schemas["DatasetVersion"];
export type DatasetUploadInfo = Schemas["DatasetUploadInfo"];
export type DatasetPreview = Schemas["DatasetPreview"];
export type DatasetFormat = DatasetVersion["format"];

/** Named as the feed names the kind of its events. */
export const DATASETS_KEY = ["dataset"] as const;
const PAGE = 100;
const PREVIEWED_ROWS = 20;

export const datasetListQuery = (mine: boolean) =>
  infiniteQueryOptions({
    queryKey: [...DATASETS_KEY, "list", mine],
    queryFn: ({ pageParam, signal }) =>
      read(api.GET("/api/v1/datasets", { params: { query: { mine, limit: PAGE, ...pageParam } }, signal })),
    initialPageParam: {} as { cursor?: string },
    getNextPageParam: (last) => (last.next_cursor ? { cursor: last.next_cursor } : undefined),
    placeholderData: keepPreviousData,
  });

const pathOf = (owner: string, name: string) => ({ path: { owner, name } });

export const datasetQuery = (owner: string, name: string) =>
  queryOptions({
    queryKey: [...DATASETS_KEY, owner, name, "info"],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/datasets/{owner}/{name}", { params: pathOf(owner, name), signal })),
  });

export const datasetVersionsQuery = (owner: string, name: string) =>
  queryOptions({
    queryKey: [...DATASETS_KEY, owner, name, "versions"],
    queryFn: async ({ signal }) =>
      (
        await read(
          api.GET("/api/v1/datasets/{owner}/{name}/versions", { params: pathOf(owner, name), signal }),
        )
      ).items,
  });

export const datasetRunsQuery = (owner: string, name: string) =>
  queryOptions({
    queryKey: [...DATASETS_KEY, owner, name, "runs"],
    queryFn: async ({ signal }) =>
      (await read(api.GET("/api/v1/datasets/{owner}/{name}/runs", { params: pathOf(owner, name), signal })))
        .items,
  });

/** A version never changes, so it is asked for once. */
export const datasetPreviewQuery = (owner: string, name: string, sha256: string) =>
  queryOptions({
    queryKey: ["dataset-preview", owner, name, sha256],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/datasets/{owner}/{name}/versions/{sha256}/preview", {
          params: { path: { owner, name, sha256 }, query: { rows: PREVIEWED_ROWS } },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const UPLOADS_KEY = ["dataset-uploads"] as const;

export const uploadsQuery = queryOptions({
  queryKey: UPLOADS_KEY,
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/dataset-uploads", { signal }))).items,
});
