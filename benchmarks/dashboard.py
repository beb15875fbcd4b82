"""The dashboard in headless Chromium over loopback: how soon it is there, answers keys, and scrolls.

`proctor view` serves real run folders. Each page is opened in a profile of its own: nothing is cached.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.children import PROCTOR, environment
from benchmarks.long_runs import play_template, write_long_run, write_many_runs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RUNS = 1_000
ROLLOUTS = 100_000
OPENED = 3
KEYS = 60
FRAMES = 240
PATIENCE_MS = 60_000
VIEWPORT = {"width": 1280, "height": 800}

OBSERVE = """
window.__seen = { lcp: 0, long: [], keys: [] };
const on = (type, each) =>
  new PerformanceObserver((list) => list.getEntries().forEach(each)).observe({ type, buffered: true });
on("largest-contentful-paint", (entry) => { __seen.lcp = entry.startTime; });
on("longtask", (entry) => { __seen.long.push(entry.duration); });
addEventListener("keydown", (event) => {
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => __seen.keys.push(performance.now() - event.timeStamp);
    port2.postMessage(0);
  });
}, true);
"""
"""A message that is posted in an animation frame arrives after that frame was painted."""
SCROLL = """
(frames) => new Promise((resolve) => {
  const box = document.querySelector("[role=grid]");
  const end = box.scrollHeight - box.clientHeight;
  const times = [];
  let last = performance.now();
  __seen.long.length = 0;
  const step = (now) => {
    times.push(now - last);
    last = now;
    box.scrollTop = (end * times.length) / frames;
    if (times.length < frames) requestAnimationFrame(step);
    else setTimeout(() => resolve({ times, long: __seen.long, end }), 500);
  };
  requestAnimationFrame(step);
})
"""

Row = tuple[str, str, str]


def measured(cwd: Path) -> Iterator[Row]:
    from tests.web.browser import launched_browser

    template = play_template(cwd)
    write_many_runs(template, cwd / "many", RUNS)
    long_run = write_long_run(template, cwd / "long", ROLLOUTS)
    with launched_browser() as browser:
        with served(cwd, "many") as url:
            yield from measure_list(browser, url)
        with served(cwd, "long") as url:
            yield from measure_long_run(browser, url, long_run)


@contextmanager
def served(cwd: Path, folder: str) -> Iterator[str]:
    """`proctor view` of a folder; yields its address."""
    child = subprocess.Popen(
        [str(PROCTOR), "view", folder, "--port", "0", "--json"],
        cwd=cwd,
        env=environment(cwd),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        yield json.loads(child.stdout.readline())["url"]
    finally:
        child.terminate()
        child.wait()


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    """A page that is cold: nothing of it is cached."""
    context = browser.new_context(viewport=VIEWPORT, reduced_motion="reduce")  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.add_init_script(OBSERVE)
    try:
        page.goto(url)
        page.get_by_role("main").wait_for()
        page.locator("[aria-busy=true]").wait_for(state="detached")
        yield page
    finally:
        context.close()


def measure_list(browser: Browser, url: str) -> Iterator[Row]:
    address = f"{url}/runs"
    yield describe_paint(
        f"runs list, {RUNS:,} runs", [paint_time(browser, address) for _ in range(OPENED)], 1.0
    )
    with opened(browser, address) as page:
        rows = page.get_by_role("grid").get_by_role("row")
        rows.nth(5).wait_for()
        yield describe_keys("j in the runs list", press_keys(page, "j", KEYS))
        yield describe_heap(f"runs list, {RUNS:,} runs", page)
    yield from measure_sizes(browser, address)


def measure_long_run(browser: Browser, url: str, run_id: str) -> Iterator[Row]:
    address = f"{url}/runs/{run_id}"
    with opened(browser, address):  # the first reader waits for the index, which all later ones share
        pass
    times = [paint_time(browser, address) for _ in range(OPENED)]
    yield describe_paint(f"run with {ROLLOUTS:,} rollouts", times, 1.5)
    with opened(browser, f"{address}/samples") as page:
        page.get_by_role("grid").get_by_role("row").nth(5).wait_for()
        yield describe_keys(f"j in {ROLLOUTS:,} samples", press_keys(page, "j", KEYS))
        yield from describe_scroll(page.evaluate(SCROLL, FRAMES))
        yield describe_heap(f"{ROLLOUTS:,} samples, scrolled to the end", page)


# What is measured


def paint_time(browser: Browser, address: str) -> float:
    """Seconds to the largest paint, once nothing larger has come for a while."""
    with opened(browser, address) as page:
        page.wait_for_timeout(500)
        return float(page.evaluate("__seen.lcp")) / 1000


def press_keys(page: Page, key: str, count: int) -> list[float]:
    for _ in range(count):
        page.keyboard.press(key)
        page.wait_for_timeout(30)
    page.wait_for_timeout(300)
    found: list[float] = page.evaluate("__seen.keys")
    return found


def measure_sizes(browser: Browser, address: str) -> Iterator[Row]:
    """What the first page sends, compressed as it is sent."""
    sizes = {"script": 0, "stylesheet": 0}
    context = browser.new_context(viewport=VIEWPORT)  # type: ignore[arg-type]
    page = context.new_page()

    def add(response: Any) -> None:
        kind = response.request.resource_type
        if kind in sizes:
            sizes[kind] += int(response.headers.get("content-length", 0))

    page.on("response", add)
    page.goto(address)
    page.get_by_role("grid").wait_for()
    page.wait_for_timeout(500)
    context.close()
    yield "dashboard: script of the first load, compressed", f"{sizes['script'] / 1000:.0f} kB", "≤ 200 kB"
    yield "dashboard: style of the first load, compressed", f"{sizes['stylesheet'] / 1000:.1f} kB", "≤ 25 kB"


# How it is told


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def describe_paint(name: str, seconds: list[float], target: float) -> Row:
    return (
        f"dashboard: largest paint, cold, {name}",
        f"{statistics.median(seconds):.2f} s",
        f"≤ {target} s",
    )


def describe_keys(name: str, times: list[float]) -> Row:
    return (
        f"dashboard: key to paint, p95, {name}",
        f"{percentile(times, 0.95):.0f} ms ({len(times)} keys)",
        "≤ 100 ms",
    )


def describe_scroll(seen: dict[str, Any]) -> Iterator[Row]:
    longest = max(seen["long"], default=0)
    yield (
        f"dashboard: longest task while {ROLLOUTS:,} rows are scrolled end to end",
        f"{longest:.0f} ms" if longest else "none over 50 ms",
        "≤ 100 ms",
    )
    yield "dashboard: frame time meanwhile, p95", f"{percentile(seen['times'], 0.95):.0f} ms", "≤ 34 ms"


def describe_heap(name: str, page: Page) -> Row:
    debugger = page.context.new_cdp_session(page)
    debugger.send("Performance.enable")
    debugger.send("HeapProfiler.collectGarbage")
    found = {each["name"]: each["value"] for each in debugger.send("Performance.getMetrics")["metrics"]}
    return (
        f"dashboard: heap after collection, {name}",
        f"{found['JSHeapUsedSize'] / 1e6:.0f} MB, {found['Nodes']:,.0f} nodes",
        "≤ 80 MB, 6,000 nodes",
    )
