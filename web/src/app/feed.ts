/** The feed of this tab: joined once, its state for the banner, its events for the cache. */
import type { QueryClient } from "@tanstack/react-query";
import { LINK_PARAMETER } from "#/api/client";
import type { FeedState } from "#/api/feed";
import { createFeedCache } from "#/api/feedCache";
import { shareFeed } from "#/api/feedShare";
import { createStore, useStore } from "./store";

type Known = { state: FeedState; since: number };

export const feed = createStore<Known>({ state: "connecting", since: Date.now() / 1000 });

let restart: () => void = () => undefined;

/** After a login: a feed that was refused is not asked for again by itself. */
export const restartFeed = (): void => restart();

export function startFeed(client: QueryClient): void {
  const cache = createFeedCache(client);
  const setState = (state: FeedState) => {
    const before = feed.get().state;
    if (before === state) return;
    feed.set(() => ({ state, since: Date.now() / 1000 }));
    // The session is over: what is shown learns of it now, and not by its next request.
    if (state === "refused" && before !== "connecting") void client.invalidateQueries();
  };
  const begin = () =>
    shareFeed(
      {
        document,
        locks: navigator.locks as LockManager | undefined, // absent where the page is not a secure context
        channel: () => new BroadcastChannel("proctor-feed"),
        fetch: (url, options) => globalThis.fetch(url, options),
      },
      { onEvent: cache.add, onState: setState },
    );
  let stop = begin();
  restart = () => {
    stop();
    stop = begin();
  };
}

const POLL_MS = 10_000;
const LINK_POLL_MS = 1_000;

/**
 * For queries of things that change: how often to ask while there is no feed; false while there is one. A feed
 * says nothing of a run that is read by its link.
 */
export function usePolling(): number | false {
  const { state } = useStore(feed);
  if (new URLSearchParams(location.search).has(LINK_PARAMETER)) return LINK_POLL_MS;
  return state === "live" ? false : POLL_MS;
}
