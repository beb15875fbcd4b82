/** What pages ask about sweeps; their runs are patched by the feed. */
import { queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";

export const SUITES_KEY = ["suites"] as const;

export const suitesQuery = () =>
  queryOptions({
    queryKey: SUITES_KEY,
    queryFn: ({ signal }) => read(api.GET("/api/v1/suites", { signal })),
  });

export const suiteQuery = (id: string) =>
  queryOptions({
    queryKey: [...SUITES_KEY, id],
    queryFn: ({ signal }) =>
      read(api.GET("/api/v1/suites/{suite_id}", { params: { path: { suite_id: id } }, signal })),
  });
