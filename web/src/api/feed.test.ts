import { describe, expect, it } from "vitest";
import { type FeedState, followFeed } from "./feed";
import { readServerEvents } from "./sse";
import type { FeedEvent } from "./types";

const encoder = new TextEncoder();
const stream = (...chunks: string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
      controller.close();
    },
  });

describe("server-sent events", () => {
  it("are read across any cut, with comments as signs of life", async () => {
    const found: unknown[] = [];
    for await (const event of readServerEvents(
      stream(": hi\n\nid: 7\nda", 'ta: {"a":\ndata: 1}\r\n\r\n', "data: x\n"),
    ))
      if (event) found.push([event.id, event.data]);
    expect(found).toEqual([["7", '{"a":\n1}']]);
  });
});

describe("the feed", () => {
  async function follow(responses: (() => Response)[]) {
    const states: FeedState[] = [];
    const events: FeedEvent[] = [];
    const asked: (string | null)[] = [];
    const stop = new AbortController();
    await followFeed({
      fetch: async (_, options) => {
        asked.push(new Headers(options.headers).get("last-event-id"));
        const next = responses.shift();
        if (!next) {
          stop.abort();
          throw new Error("gone");
        }
        return next();
      },
      onEvent: (event) => events.push(event),
      onState: (state) => states.push(state),
      signal: stop.signal,
      sleep: async () => {},
    });
    return { states, events, asked };
  }
  const event = 'id: 41\ndata: {"kind": "balance", "at": 1}\n\n';

  it("opens again where it ended, and asks for everything shown once it is back", async () => {
    const { states, events, asked } = await follow([
      () => new Response(stream(event)),
      () => new Response("", { status: 503 }),
      () => new Response(stream(event)),
    ]);
    expect(states).toEqual(["connecting", "live", "away", "away", "live", "away"]);
    expect(events.map(({ kind }) => kind)).toEqual(["balance", "resync", "balance"]);
    expect(asked).toEqual([null, "41", "41", "41"]);
  });

  it("does not press a server that refuses", async () => {
    const { states, asked } = await follow([() => new Response("", { status: 401 })]);
    expect(states).toEqual(["connecting", "refused"]);
    expect(asked).toHaveLength(1);
  });
});
