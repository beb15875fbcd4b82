/** What the settings ask about an account. A key begins with the noun of the feed's changes that refresh it. */
import { queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import type { UsageQuery } from "./types";

export const TOKEN_KEY = ["token"] as const;
export const LOGIN_KEY = ["login"] as const;
export const TEAM_KEY = ["team"] as const;
export const SECRET_KEY = ["secret"] as const;
export const BALANCE_KEY = ["balance"] as const;

export const tokensQuery = queryOptions({
  queryKey: TOKEN_KEY,
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/tokens", { signal }))).items,
});

export const loginsQuery = queryOptions({
  queryKey: LOGIN_KEY,
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/logins", { signal }))).items,
});

export const teamsQuery = queryOptions({
  queryKey: [...TEAM_KEY, "mine"],
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/teams", { signal }))).items,
});

export const membersQuery = (team: string) =>
  queryOptions({
    queryKey: [...TEAM_KEY, "members", team],
    queryFn: async ({ signal }) =>
      (await read(api.GET("/api/v1/teams/{team}/members", { params: { path: { team } }, signal }))).items,
  });

export const secretsQuery = queryOptions({
  queryKey: [...SECRET_KEY, "global"],
  queryFn: async ({ signal }) => (await read(api.GET("/api/v1/secrets", { signal }))).items,
});

export const ownEnvironmentsQuery = queryOptions({
  queryKey: ["environment", "mine"],
  queryFn: async ({ signal }) =>
    (await read(api.GET("/api/v1/environments", { params: { query: { mine: true, limit: 200 } }, signal })))
      .items,
});

/** The secrets and the variables of one environment, in one list. */
export const environmentValuesQuery = (owner: string, name: string) =>
  queryOptions({
    queryKey: [...SECRET_KEY, "environment", owner, name],
    queryFn: async ({ signal }) => {
      const path = { owner, name };
      const [secrets, variables] = await Promise.all([
        read(api.GET("/api/v1/environments/{owner}/{name}/secrets", { params: { path }, signal })),
        read(api.GET("/api/v1/environments/{owner}/{name}/variables", { params: { path }, signal })),
      ]);
      return [...secrets.items, ...variables.items];
    },
  });

export const balanceQuery = (owner: string) =>
  queryOptions({
    queryKey: [...BALANCE_KEY, owner],
    queryFn: ({ signal }) => read(api.GET("/api/v1/balance", { params: { query: { owner } }, signal })),
  });

export const entriesQuery = (owner: string) =>
  queryOptions({
    queryKey: [...BALANCE_KEY, owner, "entries"],
    queryFn: async ({ signal }) =>
      (await read(api.GET("/api/v1/entries", { params: { query: { owner, limit: 20 } }, signal }))).items,
  });

export const usageQuery = (query: UsageQuery) =>
  queryOptions({
    queryKey: [...BALANCE_KEY, query.owner, "usage", query],
    queryFn: ({ signal }) => read(api.GET("/api/v1/usage", { params: { query }, signal })),
  });
