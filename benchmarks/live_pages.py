"""How soon a page shows what has just happened, in one tab and in eight; and how soon a search finds a text.

`proctor view` serves a run that is being played, and one of 500 MB. Times are of one machine's clock: from
before a row is written until the frame that shows it was painted.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from benchmarks.dashboard import PATIENCE_MS, VIEWPORT, served
from tests.web.browser import launched_browser
from tests.web.played_runs import play_sums
from tests.web.run.live_run import LiveRun

Row = tuple[str, str, str]
TABS = 8
STEPS = 10
PAUSE_SECONDS = 1.5
"""Between two rollouts, so that none is announced together with the one before."""
ROWS = 5_000
ROW_BYTES = 100_000
NEEDLE = "a needle in the hay"
NEEDLE_AT = 50
WATCH = """
() => {
  const shown = () => document.querySelector("main")?.innerText.match(/(\\d+) rollouts/)?.[1] ?? "";
  window.__seen = {};
  const look = () => {
    const text = shown();
    if (text && !(text in window.__seen)) window.__seen[text] = Date.now();
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
"""
FIRST_HIT = """
const look = () => {
  if (document.querySelector("mark")) window.__hit = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


def measured(cwd: Path) -> Iterator[Row]:
    with launched_browser() as browser:
        played = play_sums(cwd / "live").folder
        with LiveRun.copy_of(played, "live") as live, served(cwd, "live") as url:
            for tabs, name in ((1, "one tab"), (TABS, f"{TABS} tabs")):
                delays = measure_delays(browser, url, live, tabs)
                yield (
                    f"dashboard: from a finished rollout to the pixel, {name}",
                    f"{statistics.median(delays):.2f} s (worst {max(delays):.2f} s of {len(delays)})",
                    "≤ 1 s",
                )
        large = write_large_run(played, cwd / "large")
        with served(cwd, "large") as url:
            for name in ("first", "second"):
                yield (
                    f"dashboard: {name} search of {ROWS * ROW_BYTES / 1e6:,.0f} MB, to the first hit shown",
                    f"{measure_search(browser, url, large) / 1000:.2f} s",
                    "≤ 1 s",
                )


def measure_delays(browser: Browser, url: str, live: LiveRun, tabs: int) -> list[float]:
    context = browser.new_context(base_url=url, viewport=VIEWPORT)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    try:
        pages = [open_live(context.new_page()) for _ in range(tabs)]
        delays: list[float] = []
        for _ in range(STEPS):
            time.sleep(PAUSE_SECONDS)
            started = time.time()
            live.play(1)
            for page in pages:
                page.wait_for_function(f"() => '{live.played}' in window.__seen")
                delays.append(float(page.evaluate(f"() => window.__seen['{live.played}']")) / 1000 - started)
        return delays
    finally:
        context.close()


def open_live(page: Page) -> Page:
    page.goto("/runs/live/samples")
    page.get_by_text("rollouts").first.wait_for()
    page.evaluate(WATCH)
    return page


def measure_search(browser: Browser, url: str, run: Path) -> float:
    """From the start of the navigation until the page shows a passage."""
    context = browser.new_context(base_url=url, viewport=VIEWPORT)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    try:
        page = context.new_page()
        page.add_init_script(FIRST_HIT)
        page.goto(f"/runs/{run.name}/search?q={NEEDLE}")
        page.wait_for_function("() => window.__hit")
        return float(page.evaluate("() => window.__hit"))
    finally:
        context.close()


def write_large_run(played: Path, folder: Path) -> Path:
    """Long answers, of which one in fifty has what is sought."""
    run = folder / "evals" / "large--careful" / "large"
    run.mkdir(parents=True)
    template: dict[str, Any] = json.loads((played / "results.jsonl").read_text().splitlines()[0])
    filler = "hay " * (ROW_BYTES // 4)
    with (run / "results.jsonl").open("w", encoding="utf-8") as file:
        for place in range(ROWS):
            text = f"{filler}{NEEDLE if place % NEEDLE_AT == NEEDLE_AT - 1 else ''}"
            answer = {"role": "assistant", "content": text}
            row = template | {"example_id": place, "task_hash": f"{place:016x}", "completion": [answer]}
            file.write(json.dumps(row) + "\n")
    metadata = json.loads((played / "metadata.json").read_text(encoding="utf-8"))
    metadata |= {"run_id": "large", "planned": ROWS, "settled": ROWS, "num_examples": ROWS}
    (run / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    return run
