/** What the pages for admins ask. A key begins with the noun of the feed's changes that refresh it; `work` is
 * refreshed when a run changes. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import type { AuditQuery } from "./types";

export const USER_KEY = ["user"] as const;
export const PRICE_KEY = ["price"] as const;
export const WORK_KEY = ["work"] as const;
export const BALANCES_KEY = ["balance", "all"] as const;
export const AUDIT_KEY = ["audit"] as const;
const AUDIT_PAGE = 50;

export const usersQuery = queryOptions({
  queryKey: USER_KEY,
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/users", { signal }))).items,
});

export const modelsQuery = queryOptions({
  queryKey: [...PRICE_KEY, "models"],
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/models", { signal }))).items,
});

export const pricesQuery = queryOptions({
  queryKey: [...PRICE_KEY, "set"],
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/prices", { signal }))).items,
});

export const hostsQuery = queryOptions({
  queryKey: [...WORK_KEY, "hosts"],
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/admin/hosts", { signal }))).items,
});

export const queueQuery = queryOptions({
  queryKey: [...WORK_KEY, "queue"],
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/admin/queue", { signal }))).items,
});

export const storageQuery = queryOptions({
  queryKey: ["storage"],
  queryFn: ({ signal }) => read(api.GET("/api/v1/admin/storage", { signal })),
});

export const allSourcesQuery = queryOptions({
  queryKey: ["source", "all"],
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/sources", { signal }))).items,
});

export const balancesQuery = queryOptions({
  queryKey: BALANCES_KEY,
  queryFn: async ({ signal }) =>
    (await read(api.GET("/api/v1/balances", { params: { query: { limit: 1000 } }, signal }))).items,
});

export const auditQuery = (query: AuditQuery) =>
  infiniteQueryOptions({
    queryKey: [...AUDIT_KEY, query],
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET("/api/v1/audit", {
          params: { query: { ...query, limit: AUDIT_PAGE, ...(pageParam ? { cursor: pageParam } : {}) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
