import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Browser, shareFeed } from "./feedShare";
import type { FeedEvent } from "./types";

/** Locks as a browser has them: one holder, then the next in line. */
function createLocks(): Browser["locks"] {
  let tail: Promise<unknown> = Promise.resolve();
  const request = (_: string, { signal }: LockOptions, run: () => Promise<void>) => {
    const turn = tail.then(() => (signal?.aborted ? undefined : run()));
    tail = turn.catch(() => {});
    return turn;
  };
  return { request } as unknown as Browser["locks"];
}

class Page extends EventTarget {
  visibilityState: DocumentVisibilityState = "visible";

  show(state: DocumentVisibilityState) {
    this.visibilityState = state;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

describe("a feed shared by tabs", () => {
  const channels = new Set<{ onmessage: ((event: MessageEvent) => void) | null }>();
  let opened: ReadableStreamDefaultController<Uint8Array>[] = [];
  const send = (event: object) =>
    opened.at(-1)?.enqueue(new TextEncoder().encode(`data: ${JSON.stringify({ at: 1, ...event })}\n\n`));

  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  function openTab(locks: Browser["locks"]) {
    const page = new Page();
    const heard: FeedEvent["kind"][] = [];
    const channel = () => {
      const mine = {
        onmessage: null as ((event: MessageEvent) => void) | null,
        postMessage: (data: unknown) => {
          for (const other of channels) if (other !== mine) other.onmessage?.({ data } as MessageEvent);
        },
        close: () => channels.delete(mine),
      };
      channels.add(mine);
      return mine;
    };
    const fetch: Browser["fetch"] = async (_, { signal }) => {
      let mine: ReadableStreamDefaultController<Uint8Array>;
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          mine = controller;
          opened.push(controller);
          signal?.addEventListener("abort", () => {
            opened = opened.filter((each) => each !== mine);
            controller.error(signal.reason);
          });
        },
      });
      return new Response(body);
    };
    const browser = {
      document: page as unknown as Browser["document"],
      locks,
      channel: channel as Browser["channel"],
      fetch,
    };
    const close = shareFeed(browser, { onEvent: (event) => heard.push(event.kind), onState: () => {} });
    return { page, heard, close };
  }

  const settle = () => vi.advanceTimersByTimeAsync(10);

  it("is opened once, and every tab hears it", async () => {
    const locks = createLocks();
    const tabs = [openTab(locks), openTab(locks), openTab(locks)];
    await settle();
    expect(opened).toHaveLength(1);
    send({ kind: "balance" });
    await settle();
    expect(tabs.map((tab) => tab.heard)).toEqual([["balance"], ["balance"], ["balance"]]);
    for (const tab of tabs) tab.close();
    await settle();
    expect(opened).toHaveLength(0);
  });

  it("is handed on when its tab is hidden, which asks for everything when it is seen again", async () => {
    const locks = createLocks();
    const first = openTab(locks);
    const second = openTab(locks);
    await settle();
    first.page.show("hidden");
    await vi.advanceTimersByTimeAsync(6_000);
    expect(opened).toHaveLength(1);
    send({ kind: "balance" });
    await settle();
    expect([first.heard, second.heard]).toEqual([[], ["balance"]]);
    first.page.show("visible");
    await settle();
    expect(opened).toHaveLength(1);
    send({ kind: "balance" });
    await settle();
    expect(first.heard).toEqual(["resync", "balance"]);
    first.close();
    second.close();
  });
});
