/** What pages ask about environments, as queries, and what they change. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import { ENVIRONMENTS_KEY, environmentKey } from "./environmentKeys";
import type { Collaborator, EnvironmentInfo, EnvironmentListQuery } from "./types";

export type Slug = { owner: string; name: string };
export type VersionOf = Slug & { version: string };

export const slugOf = ({ owner, name }: Slug): string => `${owner}/${name}`;

const PAGE = 100;
const MOST_TEXT = 2 ** 20;

export const environmentListQuery = (query: EnvironmentListQuery) =>
  infiniteQueryOptions({
    queryKey: [...ENVIRONMENTS_KEY, "list", query],
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET("/api/v1/environments", {
          params: { query: { limit: PAGE, ...query, ...pageParam } },
          signal,
        }),
      ),
    initialPageParam: {} as { cursor?: string },
    getNextPageParam: (last) => (last.next_cursor ? { cursor: last.next_cursor } : undefined),
    placeholderData: keepPreviousData,
  });

type FacetQuery = Pick<EnvironmentListQuery, "search" | "mine">;

export const environmentFacetsQuery = (query: FacetQuery) =>
  queryOptions({
    queryKey: [...ENVIRONMENTS_KEY, "facets", query],
    queryFn: ({ signal }) => read(api.GET("/api/v1/environments/facets", { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

/** One environment, or null if there is none that the reader may see: runs also name some that no hub has. */
export const environmentQuery = (slug: Slug) =>
  queryOptions({
    queryKey: [...environmentKey(slugOf(slug)), "info"],
    queryFn: async ({ signal }): Promise<EnvironmentInfo | null> => {
      const query = { ...slug, limit: 1 };
      return (await read(api.GET("/api/v1/environments", { params: { query }, signal }))).items[0] ?? null;
    },
  });

export const versionsQuery = (slug: Slug) =>
  queryOptions({
    queryKey: [...environmentKey(slugOf(slug)), "versions"],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/environments/{owner}/{name}/versions", { params: { path: slug }, signal })),
  });

export const versionQuery = (version: VersionOf) =>
  queryOptions({
    queryKey: [...environmentKey(slugOf(version)), "version", version.version],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/environments/{owner}/{name}/versions/{version}", {
          params: { path: version },
          signal,
        }),
      ),
  });

/** Files of a version never change, so the feed has nothing to say of them. */
export const filesQuery = (version: VersionOf, path: string) =>
  queryOptions({
    queryKey: [...environmentKey(slugOf(version)), "files", version.version, path],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/environments/{owner}/{name}/versions/{version}/files", {
          params: { path: version, query: { path, max_bytes: MOST_TEXT } },
          signal,
        }),
      ),
    meta: { live: false },
  });

export const tasksQuery = (version: VersionOf) =>
  infiniteQueryOptions({
    queryKey: [...environmentKey(slugOf(version)), "tasks", version.version],
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET("/api/v1/environments/{owner}/{name}/versions/{version}/tasks", {
          params: { path: version, query: { limit: PAGE, ...pageParam } },
          signal,
        }),
      ),
    initialPageParam: {} as { cursor?: string },
    getNextPageParam: (last) => (last.next_cursor ? { cursor: last.next_cursor } : undefined),
  });

export const runSecretsQuery = (version: VersionOf) =>
  queryOptions({
    queryKey: [...environmentKey(slugOf(version)), "secrets", version.version],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/environments/{owner}/{name}/versions/{version}/secrets", {
          params: { path: version },
          signal,
        }),
      ),
  });

export const collaboratorsQuery = (slug: Slug) =>
  queryOptions({
    queryKey: [...environmentKey(slugOf(slug)), "collaborators"],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/environments/{owner}/{name}/collaborators", { params: { path: slug }, signal })),
  });

// Changes

export type EnvironmentChange = {
  visibility?: EnvironmentInfo["visibility"];
  run_policy?: EnvironmentInfo["run_policy"] | "default";
};

export const changeEnvironment = (slug: Slug, body: EnvironmentChange) =>
  read(api.PATCH("/api/v1/environments/{owner}/{name}", { params: { path: slug }, body }));

export const deleteEnvironment = (slug: Slug) =>
  read(api.DELETE("/api/v1/environments/{owner}/{name}", { params: { path: slug } }));

export const deleteVersion = (version: VersionOf) =>
  read(api.DELETE("/api/v1/environments/{owner}/{name}/versions/{version}", { params: { path: version } }));

export const checkAgain = (version: VersionOf) =>
  read(
    api.POST("/api/v1/environments/{owner}/{name}/versions/{version}/check", { params: { path: version } }),
  );

export const forkEnvironment = (version: VersionOf, team: string | null, key: string) =>
  read(
    api.POST("/api/v1/environments/{owner}/{name}/fork", {
      params: { path: { owner: version.owner, name: version.name }, header: { "Idempotency-Key": key } },
      body: { team, version: version.version },
    }),
  );

export const grantRole = (slug: Slug, body: Collaborator) =>
  read(api.PUT("/api/v1/environments/{owner}/{name}/collaborators", { params: { path: slug }, body }));

export const revokeRole = (slug: Slug, who: string) =>
  read(
    api.DELETE("/api/v1/environments/{owner}/{name}/collaborators/{who}", {
      params: { path: { ...slug, who } },
    }),
  );
