/** How answers are cached, and when a failed request is tried again. */
import { QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError, isAway } from "#/api/client";

declare module "@tanstack/react-query" {
  interface Register {
    queryMeta: {
      /** False for a query that looks after itself, and is not asked again when the feed reports its run. */
      live?: false;
      /** A refusal is shown where it is, instead of leading to the login page. */
      quiet?: true;
      /** The runs that a query of several is about: it is asked again when the feed reports one of them. */
      runs?: readonly string[];
    };
  }
}

const TRIES = 4;
const LONGEST_PAUSE_MS = 15_000;

/** A refusal stays a refusal; a server that does not answer may be back soon. */
export const shouldRetry = (failures: number, error: unknown): boolean => isAway(error) && failures < TRIES;

export function createQueryClient(onLoggedOut: () => void): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({
      onError(error, query) {
        if (error instanceof ApiError && error.status === 401 && !query.meta?.quiet) onLoggedOut();
      },
    }),
    defaultOptions: {
      queries: {
        staleTime: 30_000,
        gcTime: 5 * 60_000,
        retry: shouldRetry,
        retryDelay: (failures) => Math.min(1000 * 2 ** failures, LONGEST_PAUSE_MS),
        refetchOnWindowFocus: false, // the feed says what has changed
      },
    },
  });
}
