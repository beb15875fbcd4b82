/** The answer of a query once it is there; before, a skeleton; instead, what went wrong and a way to try again. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { LoadError } from "#/app/PageError";
import { Skeleton } from "#/design/Skeleton";

type Props<T> = { query: UseQueryResult<T>; lines?: number; children: (data: T) => ReactNode };

/** Data that was loaded before stays while a newer request fails: the banner says how old it is. */
export function Loaded<T>({ query, lines = 4, children }: Props<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <LoadError error={query.error} onRetry={() => void query.refetch()} />;
  return <Skeleton lines={lines} />;
}
