/**
 * The connection to `/feed`: opened, watched, opened again. Read by `fetch`, not by EventSource, which shows
 * neither the status of a refusal nor the server's signs of life, so that a dead connection looks healthy.
 */

import { readServerEvents } from "./sse";
import type { FeedEvent } from "./types";

export type FeedState = "connecting" | "live" | "away" | "refused";

export type FeedConnection = {
  fetch: (url: string, options: RequestInit) => Promise<Response>;
  onEvent: (event: FeedEvent) => void;
  onState: (state: FeedState) => void;
  signal: AbortSignal;
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
};

const URL_OF_FEED = "/api/v1/feed";
const SILENCE_MS = 45_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 20_000;

/** Runs until the signal; an ended or silent connection is opened again, with growing pauses. */
export async function followFeed(connection: FeedConnection): Promise<void> {
  const { signal, onState, onEvent, sleep = wait } = connection;
  let last = "";
  let pause = FIRST_PAUSE_MS;
  let wasLive = false;
  onState("connecting");
  while (!signal.aborted) {
    try {
      for await (const event of open(connection, last)) {
        if (event === "open") {
          if (wasLive) onEvent({ kind: "resync", at: Date.now() / 1000 });
          onState("live");
          wasLive = true;
          pause = FIRST_PAUSE_MS;
          continue;
        }
        last = event.id || last;
        onEvent(event.value);
      }
    } catch (error) {
      if (error instanceof Refusal) return onState("refused");
    }
    if (signal.aborted) return;
    onState("away");
    await sleep(pause * (0.75 + Math.random() / 2), signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

class Refusal extends Error {}

type Received = { id: string; value: FeedEvent };

async function* open(connection: FeedConnection, last: string): AsyncGenerator<"open" | Received> {
  const silence = new AbortController();
  const signal = AbortSignal.any([connection.signal, silence.signal]);
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const headers = { accept: "text/event-stream", ...(last ? { "last-event-id": last } : {}) };
    const response = await connection.fetch(URL_OF_FEED, {
      headers,
      signal,
      credentials: "same-origin",
      cache: "no-store",
    });
    // 404: an older server, or one without a feed; asking again and again would not help.
    if ([401, 403, 404].includes(response.status)) throw new Refusal();
    if (!response.ok || !response.body) throw new Error(`The feed answered ${response.status}.`);
    yield "open";
    for await (const event of readServerEvents(response.body)) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      if (event) yield { id: event.id, value: JSON.parse(event.data) as FeedEvent };
    }
  } finally {
    clearTimeout(timer);
  }
}

export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
