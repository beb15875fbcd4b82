/** Server-sent events from a streamed body. Knows the format; knows nothing of what the events mean. */

export type ServerSentEvent = { id: string; event: string; data: string };

const LARGEST_EVENT = 4_000_000;

/** Yields each event, and null for each sign of life without one: a comment, or part of an event. */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<ServerSentEvent | null> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let current = { id: "", event: "", data: [] as string[] };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r/);
      rest = lines.pop() ?? "";
      if (rest.length > LARGEST_EVENT) throw new Error("An event of the feed is too large.");
      yield null;
      for (const line of lines) {
        if (line !== "") {
          addLine(current, line);
          continue;
        }
        if (current.data.length > 0) yield { ...current, data: current.data.join("\n") };
        current = { id: current.id, event: "", data: [] };
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function addLine(current: { id: string; event: string; data: string[] }, line: string): void {
  const colon = line.indexOf(":");
  if (colon === 0) return;
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "data") current.data.push(value);
  else if (name === "id") current.id = value;
  else if (name === "event") current.event = value;
}
