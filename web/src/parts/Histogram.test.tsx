import { act } from "react";
import { createRoot } from "react-dom/client";
import { describe, expect, it } from "vitest";
import { Histogram } from "./Histogram";
import { findDomains } from "./Score";

async function drawBars(values: readonly number[]) {
  const bins = values.map((value) => ({ low: value, high: value, count: 2 }));
  const figures = { n: 2 * bins.length, missing: 0, mean: 0.5, median: 0, p90: 1, lowest: 0, highest: 1 };
  const distribution = { of: "reward", bins, complete: true, ...figures };
  const element = document.createElement("div");
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  await act(async () =>
    createRoot(element).render(<Histogram distribution={distribution} label="Rewards" />),
  );
  return [...element.querySelectorAll("rect")].map(
    (bar) => Number(bar.getAttribute("x")) + Number(bar.getAttribute("width")) / 2,
  );
}

describe("a histogram of few values", () => {
  it("has each bar where its value lies", async () => {
    const [zero = 0, tenth = 0, one = 0] = await drawBars([0, 0.1, 1]);
    expect((tenth - zero) / (one - zero)).toBeCloseTo(0.1);
  });
});

describe("bars of scores in a list", () => {
  it("are on the scale of their environment", () => {
    const score = (mean: number) => ({ mean, interval: null, coverage: 1, tasks: 4 });
    const domains = findDomains([
      { environment: "sums", score: score(0.5) },
      { environment: "points", score: score(1e12) },
    ]);
    expect(domains.get("sums")).toEqual([0, 1]);
    expect(domains.get("points")).toEqual([0, 1e12]);
  });
});
