/** How answers are cached, and when a failed request is tried again. */
import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError, isAway } from "#/api/client";
import { type SessionInfo, sessionQuery } from "#/api/session";

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

const isRefused = (error: unknown): error is ApiError => error instanceof ApiError && error.status === 401;

type SessionListener = {
  onSession: (session: SessionInfo | null) => void;
  /** With a refusal for lack of a session. */
  onRefused: (refusal: ApiError) => void;
};

export function createQueryClient({ onSession, onRefused }: SessionListener): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({
      onError(error, query) {
        if (isRefused(error) && !query.meta?.quiet) onRefused(error);
      },
      onSuccess(data, query) {
        if (query.queryKey[0] === sessionQuery.queryKey[0]) onSession(data as SessionInfo | null);
      },
    }),
    mutationCache: new MutationCache({
      onError(error) {
        if (isRefused(error)) onRefused(error);
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
