import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { applyChange, createFeedCache, writeRun } from "./feedCache";
import { runListQuery, runQuery } from "./runs";
import type { RunChange, RunInfo, RunPage } from "./types";

const run = (id: string) =>
  ({ id, status: "running", last_seq: 5, revision: 2, name: "old", score: null, cost_usd: null }) as RunInfo;
const change = (id: string, values: Partial<RunChange> = {}) =>
  ({
    id,
    status: "running",
    last_seq: 6,
    revision: 2,
    name: "old",
    progress: { settled: 3 },
    ...values,
  }) as RunChange;

describe("the cache behind the feed", () => {
  let client: QueryClient;
  const list = runListQuery({}).queryKey;

  beforeEach(() => {
    vi.useFakeTimers();
    client = new QueryClient();
    client.setQueryData(list, {
      pages: [{ items: [run("a"), run("b")], total: 2 } as RunPage],
      pageParams: [{}],
    });
    client.setQueryData(runQuery("a").queryKey, run("a"));
  });
  afterEach(() => vi.useRealTimers());

  const items = () => client.getQueryData<{ pages: RunPage[] }>(list)?.pages[0]?.items ?? [];

  it("shows a run's newest state in lists and on its page, at once and then after a pause for many events", () => {
    const feed = createFeedCache(client);
    const written = vi.fn();
    client
      .getQueryCache()
      .subscribe((event) => event.type === "updated" && event.query.queryKey[1] === "list" && written());
    feed.add({ kind: "run", at: 1, run: change("a", { last_seq: 6 }) });
    vi.advanceTimersByTime(0);
    expect(items().map((each) => each.last_seq)).toEqual([6, 5]);
    written.mockClear();
    for (let seq = 7; seq < 500; seq++) feed.add({ kind: "run", at: 1, run: change("a", { last_seq: seq }) });
    vi.advanceTimersByTime(249);
    expect(written).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(items().map((each) => each.last_seq)).toEqual([499, 5]);
    expect(client.getQueryData<RunInfo>(runQuery("a").queryKey)?.last_seq).toBe(499);
    expect(written.mock.calls.length).toBeLessThanOrEqual(2);
  });

  it("ignores what is older than it knows", () => {
    createFeedCache(client).add({ kind: "run", at: 1, run: change("a", { last_seq: 4, status: "pending" }) });
    vi.advanceTimersByTime(250);
    expect(items()[0]?.status).toBe("running");
  });

  it("counts a new run again instead of inserting it, and drops a deleted one", () => {
    const asked = vi.spyOn(client, "invalidateQueries");
    const feed = createFeedCache(client);
    feed.add({ kind: "run", at: 1, run: change("new") });
    feed.add({ kind: "run_deleted", at: 1, run_id: "b" });
    vi.advanceTimersByTime(250);
    expect(items().map(({ id }) => id)).toEqual(["a"]);
    const totals = () => asked.mock.calls.filter(([filters]) => filters?.queryKey?.[1] === "total").length;
    expect(totals()).toBe(1);
    for (let index = 0; index < 5; index++) {
      feed.add({ kind: "run", at: 1, run: change(`new-${index}`) });
      vi.advanceTimersByTime(100);
    }
    vi.advanceTimersByTime(5_000);
    expect(totals()).toBe(2);
    feed.stop();
  });

  it("takes over a new name, and no older one than it knows", () => {
    expect(applyChange(run("a"), change("a", { revision: 3, name: "new" })).name).toBe("new");
    const late = applyChange(run("a"), change("a", { revision: 1, name: "older" }));
    expect([late.name, late.last_seq]).toEqual(["old", 6]);
  });

  it("forgets why a run ended when it is resumed", () => {
    const ended = { ...run("a"), cause: { code: "budget", message: "" }, ended_at: 9 } as RunInfo;
    const resumed = applyChange(ended, change("a", { status: "pending", cause: null, ended_at: null }));
    expect([resumed.cause, resumed.ended_at]).toEqual([null, null]);
  });

  it("shows the answer to a change at once, unless something newer is known", () => {
    writeRun(client, { ...run("a"), status: "stopping", last_seq: 6 });
    expect(client.getQueryData<RunInfo>(runQuery("a").queryKey)?.status).toBe("stopping");
    expect(items()[0]?.status).toBe("stopping");
    writeRun(client, { ...run("a"), status: "running", last_seq: 5 });
    expect(client.getQueryData<RunInfo>(runQuery("a").queryKey)?.status).toBe("stopping");
  });

  it("asks again for a run that was deleted, so that its page says so", () => {
    const feed = createFeedCache(client);
    feed.add({ kind: "run_deleted", at: 1, run_id: "a" });
    vi.advanceTimersByTime(250);
    expect(client.getQueryState(runQuery("a").queryKey)?.isInvalidated).toBe(true);
    expect(items().map(({ id }) => id)).toEqual(["b"]);
  });
});
