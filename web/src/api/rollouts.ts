/** What pages ask about one rollout: its skeleton, windows of its events, calls as sent, files, matches. */
import { queryOptions } from "@tanstack/react-query";
import { ApiError, api, apiHref, read, readProblem } from "./client";
import { runKey } from "./runs";
import type { RolloutDiff, RolloutFilter, RolloutView, SearchHit } from "./types";

export type RolloutAddress = { runId: string; taskKey: string; number: number };

export const EVENTS_PER_WINDOW = 20;
export const EVENTS_OF_BEGINNING = 500;
/** Of one text, until the reader wants more: so a page stays small whatever its steps say. */
const SHOWN_CHARACTERS = 8_000;
const MOST_CHARACTERS = 100_000_000;
const MOST_MATCHES = 10_000;
/** A trace may be large: what nobody looks at any more is let go soon. */
const KEPT_MS = 5_000;

/** An ended rollout does not change, so the feed does not ask for it again. */
const STABLE = { staleTime: Number.POSITIVE_INFINITY, gcTime: KEPT_MS, meta: { live: false } } as const;

const path = ({ runId, taskKey, number }: RolloutAddress) => ({
  run_id: runId,
  key: taskKey,
  number: String(number),
});
const keyOf = ({ runId, taskKey, number }: RolloutAddress) =>
  [...runKey(runId), "rollout", taskKey, number] as const;

export const writeAddress = ({ runId, taskKey, number }: RolloutAddress): string =>
  `${runId}/${taskKey}/${number}`;

/** RUN/KEY/NUMBER, as an address of the diff page has it; null for anything else. */
export function readAddress(text: string): RolloutAddress | null {
  const [, runId = "", taskKey = "", number = ""] = /^([^/]+)\/([^/]+)\/(\d{1,9})$/.exec(text) ?? [];
  return number === "" ? null : { runId, taskKey, number: Number(number) };
}

const href = ({ runId, taskKey, number }: RolloutAddress, rest: string): string =>
  `/runs/${encodeURIComponent(runId)}/rollouts/${encodeURIComponent(taskKey)}/${number}/${rest}`;

export const imageHref = (address: RolloutAddress, event: number, part: number): string =>
  apiHref(href(address, `images/${event}/${part}`));

export const rawHref = (address: RolloutAddress): string => apiHref(href(address, "raw"));

/** With its neighbours among the rollouts that a filter shows. */
export const rolloutQuery = (address: RolloutAddress, filter: RolloutFilter = {}) =>
  queryOptions({
    queryKey: [...keyOf(address), "skeleton", filter],
    queryFn: async ({ signal }) =>
      (await read(
        api.GET("/api/v1/runs/{run_id}/rollouts/{key}/{number}", {
          params: { path: path(address), query: filter },
          signal,
        }),
      )) as RolloutView, // the client takes pairs for lists
    ...STABLE,
  });

/** The same with the first events only: of most rollouts that is all of them, and a long one can be read sooner. */
export const beginningQuery = (address: RolloutAddress, filter: RolloutFilter = {}) =>
  rolloutQuery(address, { ...filter, most_events: EVENTS_OF_BEGINNING });

export const isWhole = ({ events, total_events }: RolloutView): boolean => events.length === total_events;

/** The window that an event is in. */
export const findWindow = (index: number): number => Math.floor(index / EVENTS_PER_WINDOW);

export const eventWindowQuery = (address: RolloutAddress, window: number) =>
  queryOptions({
    queryKey: [...keyOf(address), "events", window],
    queryFn: ({ signal }) =>
      readEvents(
        address,
        { first: window * EVENTS_PER_WINDOW, count: EVENTS_PER_WINDOW, most_characters: SHOWN_CHARACTERS },
        signal,
      ),
    ...STABLE,
  });

/** One event with nothing left out of its texts. */
export const wholeEventQuery = (address: RolloutAddress, index: number) =>
  queryOptions({
    queryKey: [...keyOf(address), "whole event", index],
    queryFn: async ({ signal }) => {
      const query = { first: index, count: 1, most_characters: MOST_CHARACTERS };
      const event = (await readEvents(address, query, signal)).items[0];
      if (!event) throw new ApiError(404, "not_found", `This rollout has no event ${index}.`);
      return event;
    },
    ...STABLE,
  });

const readEvents = (
  address: RolloutAddress,
  query: { first: number; count: number; most_characters?: number },
  signal: AbortSignal,
) =>
  read(
    api.GET("/api/v1/runs/{run_id}/rollouts/{key}/{number}/events", {
      params: { path: path(address), query },
      signal,
    }),
  );

export const sentCallQuery = (address: RolloutAddress, index: number) =>
  queryOptions({
    queryKey: [...keyOf(address), "call", index],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/runs/{run_id}/rollouts/{key}/{number}/calls/{index}", {
          params: { path: { ...path(address), index: String(index) } },
          signal,
        }),
      ),
    ...STABLE,
  });

export const changedFileQuery = (address: RolloutAddress, index: number) =>
  queryOptions({
    queryKey: [...keyOf(address), "file", index],
    queryFn: ({ signal }) =>
      read(
        api.GET("/api/v1/runs/{run_id}/rollouts/{key}/{number}/files/{index}", {
          params: { path: { ...path(address), index: String(index) } },
          signal,
        }),
      ),
    ...STABLE,
  });

/** The other rollouts of a task, to compare with. */
export const siblingsQuery = ({ runId, taskKey }: RolloutAddress) =>
  queryOptions({
    queryKey: [...runKey(runId), "siblings", taskKey],
    queryFn: async ({ signal }) => {
      const query = { task: taskKey, sort: "number", limit: 100 } as const;
      const page = await read(
        api.GET("/api/v1/runs/{run_id}/rollouts", { params: { path: { run_id: runId }, query }, signal }),
      );
      return page.items;
    },
    gcTime: KEPT_MS,
    meta: { live: false },
  });

export const diffQuery = (a: string, b: string) =>
  queryOptions({
    queryKey: ["diff", a, b],
    queryFn: async ({ signal }) =>
      (await read(api.GET("/api/v1/diff", { params: { query: { a, b } }, signal }))) as RolloutDiff,
    ...STABLE,
  });

/** The row as it is stored, as text. */
export const rawRowQuery = (address: RolloutAddress) =>
  queryOptions({
    queryKey: [...keyOf(address), "raw"],
    queryFn: ({ signal }) => fetchText(rawHref(address), signal),
    ...STABLE,
  });

/** The events of a rollout that contain a text, in order. */
export const matchesQuery = (address: RolloutAddress, text: string) =>
  queryOptions({
    queryKey: [...keyOf(address), "matches", text],
    queryFn: async ({ signal }) => {
      const { runId, taskKey, number } = address;
      const query = { q: text, key: taskKey, number: String(number), limit: String(MOST_MATCHES) };
      const found: SearchHit[] = [];
      for await (const hits of searchRun(runId, query, signal)) found.push(...hits);
      return found;
    },
    enabled: text !== "",
    ...STABLE,
  });

/** The places of a run where a text is found, in the batches in which the server finds them. */
export async function* searchRun(
  runId: string,
  query: { q: string; key?: string; number?: string; limit?: string },
  signal: AbortSignal,
): AsyncGenerator<SearchHit[]> {
  const response = await fetchFile(apiHref(`/runs/${encodeURIComponent(runId)}/search`, query), signal);
  if (!response.body) return;
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of readChunks(response.body)) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (lines.length > 0) yield lines.filter(Boolean).map((line) => JSON.parse(line) as SearchHit);
  }
}

/** Not all browsers can iterate over a stream. */
async function* readChunks(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The server stopped answering.");
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

const fetchText = async (address: string, signal: AbortSignal): Promise<string> =>
  (await fetchFile(address, signal)).text();

async function fetchFile(address: string, signal: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address, { signal, credentials: "same-origin" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The server does not answer.");
  }
  if (!response.ok) throw readProblem(response.status, await response.json().catch(() => null));
  return response;
}
