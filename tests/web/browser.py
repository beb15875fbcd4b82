"""Chromium for tests of the dashboard, and what every page must do: no error, no violation, no foreign host.

Needs Chromium, the built dashboard and, for `find_violations`, `web/node_modules`. Where one is missing,
tests are skipped; with PROCTOR_NEED_BROWSER=1, as CI sets it, they fail.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from proctor.pages.files import BuiltPages

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
NEED_VARIABLE = "PROCTOR_NEED_BROWSER"
SCREENSHOTS_VARIABLE = "PROCTOR_SCREENSHOTS"
"""A folder to write screenshots to; without it, none are written."""
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The shell first: it renders the same without the windows, tabs and menus of a whole browser."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Tests may run as root, and nothing of Chromium's own may call home."""
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
THEMES = ("light", "dark")
PATIENCE_MS = 30_000
KEY_TRIES, KEY_MS = 6, 5_000
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
REPORT_VIOLATIONS = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.__violations.push(`${event.effectiveDirective} refused ${event.blockedURI || event.sample}`));
"""


def skip_or_fail(why: str) -> NoReturn:
    if os.environ.get(NEED_VARIABLE):
        pytest.fail(f"{why} ({NEED_VARIABLE} is set)")
    pytest.skip(why)


@contextmanager
def launched_browser() -> Iterator[Browser]:
    """Chromium, for as long as the block lasts: while it runs, its thread has an event loop."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        skip_or_fail("there is no Chromium")
    if not BuiltPages().are_built():
        skip_or_fail("the dashboard is not built: make web")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class PageWatch:
    """Notes what a page must not do."""

    def __init__(self, page: Page, server_url: str) -> None:
        self.page = page
        self.host = urlsplit(server_url).netloc
        self.problems: list[str] = []
        self._expected: list[str] = []
        page.add_init_script(REPORT_VIOLATIONS)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))
        page.on("request", self._on_request)

    def expect(self, pattern: str) -> None:
        """Errors that match are what this test is about."""
        self._expected.append(pattern)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            where = urlsplit(
                message.location.get("url", "")
            ).path  # of what could not be loaded, or the script
            self.problems.append(f"console {message.type}: {message.text} [{where}]")

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self.host:
            self.problems.append(f"foreign request: {request.url}")

    def check(self) -> None:
        violations = self.page.evaluate("window.__violations ?? []") if not self.page.is_closed() else []
        found = [*self.problems, *(f"policy: {each}" for each in violations)]
        left = [each for each in found if not any(re.search(pattern, each) for pattern in self._expected)]
        assert left == [], "\n".join(left)


@contextmanager
def opened_page(
    browser: Browser, server_url: str, *, theme: str = "light", viewport: dict[str, int] | None = None
) -> Iterator[tuple[Page, PageWatch]]:
    """A page in a browser profile of its own, watched until the block ends."""
    options: dict[str, Any] = {"viewport": viewport or DESKTOP, "color_scheme": theme}
    context = browser.new_context(base_url=server_url, reduced_motion="reduce", **options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    watch = PageWatch(page, server_url)
    try:
        yield page, watch
        watch.check()
    finally:
        context.close()


def find_violations(page: Page) -> list[str]:
    """What axe finds serious on a page. It is evaluated by the debugger, to which no policy applies."""
    if not AXE.exists():
        skip_or_fail("axe-core is not installed: make web")
    page.evaluate(AXE.read_text(encoding="utf-8") + "\n;void 0")
    options = {"runOnly": RULES, "resultTypes": ["violations"]}
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [
        f"{each['id']} ({each['impact']}): {', '.join(str(node['target']) for node in each['nodes'][:3])}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def take_screenshot(page: Page, name: str) -> None:
    """Write a screenshot if somebody wants to look."""
    folder = os.environ.get(SCREENSHOTS_VARIABLE)
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", animations="disabled")


def go_by_keys(page: Page, key: str, path: str) -> None:
    """`g` and a key. On a busy machine the second may come too late to belong to the first."""
    for _ in range(KEY_TRIES):
        page.keyboard.press("g")
        page.keyboard.press(key)
        with suppress(PlaywrightTimeoutError):
            page.wait_for_url(re.compile(rf"{re.escape(path)}(\?|$)"), timeout=KEY_MS, wait_until="commit")
            return
    raise AssertionError(f"g {key} does not lead to {path}")


def wait_until(page: Page, script: str, milliseconds: int = PATIENCE_MS) -> Any:
    """The value of a script once it is truthy. Playwright's own waiting evaluates in the page, which the
    policy forbids."""
    for _ in range(milliseconds // 20):
        if value := page.evaluate(script):
            return value
        page.wait_for_timeout(20)
    raise AssertionError(f"still false after {milliseconds} ms: {script}")
