"""How soon a long rollout can be read in the browser, and what it takes there.

Times are those of the page's own clock, from the start of the navigation until the first step has its
content, or until the step in the address is at the top. Needs Chromium and the built dashboard (make web).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from benchmarks.dashboard import served
from tests.web.browser import launched_browser, opened_page, wait_until
from tests.web.traced_runs import TraceSite, play_traces

Row = tuple[str, str, str]
TIMES = 5
LANDING = {"many events": 7_000, "large": 150}
WALKED = 50
WATCH = """
const look = () => {
  const wanted = location.hash.slice(1);
  const step = wanted ? document.getElementById(wanted) : document.querySelector("article");
  const box = document.querySelector("[aria-label=Conversation]");
  const body = step?.querySelector("[class*=body]");
  const off = step && box ? step.getBoundingClientRect().top - box.getBoundingClientRect().top : Infinity;
  if (body && (!wanted || Math.abs(off) < 100)) window.__readable = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


def measured(cwd: Path) -> Iterator[Row]:
    rollouts = play_traces(cwd)
    with served(cwd, ".") as url, launched_browser() as browser:
        site = TraceSite(url, rollouts)
        for name, index in LANDING.items():
            path = site.path(name)
            readable = [measure_time(browser, site, path) for _ in range(TIMES)]
            landed = [measure_time(browser, site, f"{path}#m{index}") for _ in range(TIMES)]
            yield f"Trace ({name}): readable", describe(readable), "≤ 1,000 ms"
            yield f"Trace ({name}): a link to step {index:,} lands", describe(landed), "≤ 1,500 ms"
            heap, nodes = measure_memory(browser, site, f"{path}#m{index}")
            yield f"Trace ({name}): heap after collection", f"{heap:.1f} MB", "≤ 150 MB"
            yield f"Trace ({name}): nodes in the page", f"{nodes:,.0f}", "≤ 6,000"
        before, after = measure_walk(browser, site)
        yield (
            f"Heap after {WALKED} rollouts",
            f"{before:.1f} → {after:.1f} MB ({after / before - 1:+.0%})",
            "≤ +10%",
        )


def describe(times: list[float]) -> str:
    return f"{statistics.median(times):,.0f} ms (best {min(times):,.0f}, worst {max(times):,.0f})"


def measure_time(browser: Browser, site: TraceSite, path: str) -> float:
    """In a profile of its own, so that nothing is cached."""
    with opened_page(browser, site.url) as (page, _):
        page.add_init_script(WATCH)
        page.goto(path)
        return float(wait_until(page, "() => window.__readable"))


def measure_memory(browser: Browser, site: TraceSite, path: str) -> tuple[float, float]:
    with opened_page(browser, site.url) as (page, _):
        page.add_init_script(WATCH)
        page.goto(path)
        wait_until(page, "() => window.__readable")
        for _ in range(20):  # so that more than the first screen has been there
            page.keyboard.press("j")
        page.wait_for_timeout(500)
        return read_heap(page), float(page.evaluate("() => document.querySelectorAll('*').length"))


def measure_walk(browser: Browser, site: TraceSite) -> tuple[float, float]:
    """Through the rollouts of a run and back, as somebody reads them."""
    with opened_page(browser, site.url) as (page, _):
        page.goto(site.path("right"))
        page.get_by_role("article").first.wait_for()
        for key in "]]]]][[[[[":  # so that everything that is loaded once has been
            page.keyboard.press(key)
            page.wait_for_timeout(300)
        page.wait_for_timeout(6_000)
        before = read_heap(page)
        for turn in range(WALKED):
            page.keyboard.press("]" if turn % 20 < 10 else "[")
            page.wait_for_timeout(100)
        page.wait_for_timeout(6_000)  # until what nobody looks at is let go
        return before, read_heap(page)


def read_heap(page: Page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("HeapProfiler.collectGarbage")
    found: dict[str, Any] = session.send("Performance.getMetrics")
    return float(next(each["value"] for each in found["metrics"] if each["name"] == "JSHeapUsedSize")) / 1e6
