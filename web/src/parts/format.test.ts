import { describe, expect, it } from "vitest";
import { formatAgo, formatBytes, formatDuration, formatMoney, formatPercent, formatScore } from "./format";

describe("formatters", () => {
  it("keep a score's decimals apart from noise", () => {
    expect([0.5, 1, 0, 0.61234, 12.345, 0.00004, null].map(formatScore)).toEqual([
      "0.500",
      "1.000",
      "0.000",
      "0.612",
      "12.3",
      "0.0000400",
      "–",
    ]);
  });

  it("show counts without decimals, and a minus that is not a hyphen", () => {
    expect([5, 15, 2.5, -0.25, -3.5e9, 1e-9].map(formatScore)).toEqual([
      "5",
      "15",
      "2.500",
      "−0.250",
      "−3.50e+9",
      "1.00e-9",
    ]);
  });

  it("never round a share up to all, or down to none", () => {
    expect([1, 0.99996, 0.5, 0.00001, 0].map(formatPercent)).toEqual([
      "100%",
      ">99.9%",
      "50%",
      "<0.1%",
      "0%",
    ]);
  });

  it("show cents for sums and two digits for what one call costs", () => {
    expect([12.3456, 0.0021, 0.000021, 0, undefined].map(formatMoney)).toEqual([
      "$12.35",
      "$0.0021",
      "$0.000021",
      "$0.00",
      "–",
    ]);
  });

  it("show durations by their two largest units", () => {
    expect([0.34, 4.26, 59.6, 83, 7500, 100_000, -1].map(formatDuration)).toEqual([
      "340 ms",
      "4.3 s",
      "1m 00s",
      "1m 23s",
      "2h 05m",
      "1d 03h",
      "–",
    ]);
  });

  it("say how long ago, and the date after a week", () => {
    const now = Date.UTC(2026, 10, 16, 12) / 1000;
    expect(formatAgo(now - 42, now)).toBe("40 sec. ago");
    expect(formatAgo(now - 7200, now)).toBe("2 hr. ago");
    expect(formatAgo(now - 30 * 86_400, now)).toBe("Oct 17");
    expect(formatAgo(now - 400 * 86_400, now)).toMatch(/2025/);
  });

  it("show bytes in powers of a thousand", () => {
    expect([12, 10_483_760].map(formatBytes)).toEqual(["12 B", "10.5 MB"]);
  });
});
