import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createFeedCache } from "./feedCache";
import { runListQuery, runQuery } from "./runs";
import type { RunChange, RunInfo, RunPage } from "./types";

const run = (id: string) => ({ id, status: "running", last_seq: 5, score: null, cost_usd: null }) as RunInfo;
const change = (id: string, values: Partial<RunChange> = {}) =>
  ({ id, status: "running", last_seq: 6, progress: { settled: 3 }, ...values }) as RunChange;

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

  it("shows a run's newest state in lists and on its page, after one pause for many events", () => {
    const feed = createFeedCache(client);
    const written = vi.fn();
    client
      .getQueryCache()
      .subscribe((event) => event.type === "updated" && event.query.queryKey[1] === "list" && written());
    for (let seq = 6; seq < 500; seq++) feed.add({ kind: "run", at: 1, run: change("a", { last_seq: seq }) });
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
});
