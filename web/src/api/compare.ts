/** What the compare page asks: the verdicts and a page of tasks come in one answer. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, read } from "./client";
import type { CompareQuery } from "./types";

export const COMPARE_KEY = ["compare"] as const;
export const TASKS_PER_PAGE = 100;

type Asked = Omit<CompareQuery, "offset" | "limit">;

export const comparedTasksKey = (query: Asked) => [...COMPARE_KEY, query] as const;

export const fetchCompared = (query: Asked, offset: number, limit: number, signal: AbortSignal) =>
  read(api.GET("/api/v1/compare", { params: { query: { ...query, offset, limit } }, signal }));

/** The first page, which has the verdicts and the scatter. */
export const compareQuery = (query: Asked) =>
  queryOptions({
    queryKey: [...comparedTasksKey(query), 0],
    queryFn: ({ signal }) => fetchCompared(query, 0, TASKS_PER_PAGE, signal),
    placeholderData: keepPreviousData,
    meta: { runs: query.run },
  });
