/**
 * One feed for all tabs of a browser: the tab that holds a Web Lock reads it and broadcasts it to the others. Hidden tabs
 * let go. Without locks (a page over plain HTTP from another machine) each visible tab reads its own.
 */
import { type FeedConnection, type FeedState, followFeed, wait } from "./feed";
import type { FeedEvent } from "./types";

const NAME = "proctor-feed";
const HIDDEN_MS = 5_000;

type TabMessage = { event: FeedEvent } | { state: FeedState } | { question: "state" };

export type FeedListener = { onEvent: (event: FeedEvent) => void; onState: (state: FeedState) => void };

export type Browser = {
  document: Pick<Document, "visibilityState" | "addEventListener" | "removeEventListener">;
  locks: Pick<LockManager, "request"> | undefined;
  channel: () => Pick<BroadcastChannel, "postMessage" | "close" | "onmessage">;
  fetch: FeedConnection["fetch"];
};

/** Listens until the returned function is called. A tab that was hidden hears `resync` when it is seen again. */
export function shareFeed(browser: Browser, listener: FeedListener): () => void {
  let active: AbortController | null = null;
  let hiding: ReturnType<typeof setTimeout> | undefined;
  const onVisibility = () => {
    clearTimeout(hiding);
    if (browser.document.visibilityState === "visible") {
      if (active) return;
      active = new AbortController();
      listener.onEvent({ kind: "resync", at: Date.now() / 1000 });
      void joinFeed(browser, listener, active.signal);
    } else {
      hiding = setTimeout(() => {
        active?.abort();
        active = null;
      }, HIDDEN_MS);
    }
  };
  active = new AbortController();
  void joinFeed(browser, listener, active.signal);
  browser.document.addEventListener("visibilitychange", onVisibility);
  return () => {
    clearTimeout(hiding);
    active?.abort();
    browser.document.removeEventListener("visibilitychange", onVisibility);
  };
}

async function joinFeed(browser: Browser, listener: FeedListener, signal: AbortSignal): Promise<void> {
  const channel = browser.channel();
  let state: FeedState = "connecting";
  let leads = false;
  const broadcast = (message: TabMessage) => channel.postMessage(message);
  channel.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    if ("question" in data) return leads ? broadcast({ state }) : undefined;
    if (leads) return;
    if ("event" in data) listener.onEvent(data.event);
    else listener.onState(data.state);
  };
  const lead = async () => {
    leads = true;
    await followFeed({
      fetch: browser.fetch,
      signal,
      onEvent(event) {
        listener.onEvent(event);
        broadcast({ event });
      },
      onState(next) {
        state = next;
        listener.onState(next);
        broadcast({ state: next });
      },
    });
    // A refused feed keeps its lock: the other tabs would only be refused as well.
    if (!signal.aborted) await wait(2 ** 31 - 1, signal);
  };
  listener.onState("connecting");
  broadcast({ question: "state" });
  try {
    if (browser.locks) await browser.locks.request(NAME, { signal }, lead);
    else await lead();
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    channel.close();
  }
}
