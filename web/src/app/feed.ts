/** The feed of this tab: joined once, its state for the banner, its events for the cache. */
import type { QueryClient } from "@tanstack/react-query";
import type { FeedState } from "#/api/feed";
import { createFeedCache } from "#/api/feedCache";
import { shareFeed } from "#/api/feedShare";
import { createStore, useStore } from "./store";

type Known = { state: FeedState; since: number };

export const feed = createStore<Known>({ state: "connecting", since: Date.now() / 1000 });

export function startFeed(client: QueryClient): () => void {
  const cache = createFeedCache(client);
  const setState = (state: FeedState) =>
    feed.set((now) => (now.state === state ? now : { state, since: Date.now() / 1000 }));
  const stop = shareFeed(
    {
      document,
      locks: navigator.locks as LockManager | undefined, // absent where the page is not a secure context
      channel: () => new BroadcastChannel("proctor-feed"),
      fetch: (url, options) => globalThis.fetch(url, options),
    },
    { onEvent: cache.add, onState: setState },
  );
  return () => {
    stop();
    cache.stop();
  };
}

const POLL_MS = 10_000;

/** For queries of things that change: how often to ask while there is no feed; false while there is one. */
export function usePolling(): number | false {
  return useStore(feed).state === "live" ? false : POLL_MS;
}
