/** Rows of a long list by their position, loaded page by page around what is visible. */
import { keepPreviousData, type QueryKey, useQueries } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

/** `complete` is false while the server still reads rows that are there already. */
type Page<Row> = { items: Row[]; total: number; complete?: boolean };

type Options<Row> = {
  queryKey: QueryKey;
  fetchPage: (offset: number, limit: number, signal: AbortSignal) => Promise<Page<Row>>;
  pageSize?: number;
  refetchInterval?: number | false;
};

const PAGE_SIZE = 100;
const STILL_READING_MS = 500;
/** A page that is out of sight soon goes: somebody who scrolls through 100,000 rows needs few of them. */
const KEPT_MS = 30_000;
/** Rows that are passed in between are not worth a request. */
const SETTLED_MS = 60;

/** The pages that some rows lie in, and the next one: the reader is probably on the way there. */
export function findPages(
  first: number,
  last: number,
  pageSize: number,
  total: number | undefined,
): number[] {
  const from = Math.floor(Math.max(0, first) / pageSize);
  const end = total === undefined ? from : Math.max(0, Math.ceil(total / pageSize) - 1);
  const to = Math.min(end, Math.floor(Math.max(0, last) / pageSize) + 1);
  return Array.from({ length: Math.max(1, to - from + 1) }, (_, index) => from + index);
}

type Range = { first: number; last: number };

/** The rows to load: those near the last ones at once, others when the reader stays with them. */
function useSettledRange(near: number) {
  const [range, setRange] = useState<Range>({ first: 0, last: 0 });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const onRange = (first: number, last: number) => {
    clearTimeout(timer.current);
    const isNear = first <= range.last + near && last >= range.first - near;
    if (isNear) setRange({ first, last });
    else timer.current = setTimeout(() => setRange({ first, last }), SETTLED_MS);
  };
  return { range, onRange };
}

export function usePagedRows<Row>({
  queryKey,
  fetchPage,
  pageSize = PAGE_SIZE,
  refetchInterval = false,
}: Options<Row>) {
  const { range, onRange } = useSettledRange(pageSize);
  const [total, setTotal] = useState<number | undefined>();
  const pages = findPages(range.first, range.last, pageSize, total);
  const results = useQueries({
    queries: pages.map((page) => ({
      queryKey: [...queryKey, page],
      queryFn: ({ signal }: { signal: AbortSignal }) => fetchPage(page * pageSize, pageSize, signal),
      refetchInterval: (query: { state: { data?: Page<Row> | undefined } }) =>
        query.state.data?.complete === false ? STILL_READING_MS : refetchInterval,
      placeholderData: keepPreviousData,
      gcTime: KEPT_MS,
    })),
  });
  const newest = results.find((result) => result.data && !result.isPlaceholderData)?.data?.total;
  if (newest !== undefined && newest !== total) setTotal(newest);
  const byPage = new Map(pages.map((page, index) => [page, results[index]]));
  return {
    count: newest ?? total ?? 0,
    isComplete: results.every((result) => result.data?.complete !== false),
    isLoading: results.some((result) => result.isPending) && total === undefined,
    error: results.find((result) => result.error)?.error ?? null,
    rowAt: (index: number): Row | undefined => {
      const result = byPage.get(Math.floor(index / pageSize));
      return result?.isPlaceholderData ? undefined : result?.data?.items[index % pageSize];
    },
    onRange,
    refetch: () => void Promise.all(results.map((result) => result.refetch())),
  };
}
