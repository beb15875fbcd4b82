"""Runs to look at, over each store that can show them: folders, and a server's database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser import PATIENCE_MS, PHONE, find_violations, opened_page, take_screenshot
from tests.web.conftest import log_in, settle
from tests.web.lab import Lab
from tests.web.many_rollouts import write_log
from tests.web.played_runs import play_hostile, play_shop, play_sums
from tests.web.run.acting import OwnRuns
from tests.web.run.live_run import LiveRun
from tests.web.site import viewing

LOG_LINES = 3_000
expect.set_options(timeout=PATIENCE_MS)


class RunSite(NamedTuple):
    """Pages that show some runs."""

    url: str
    runs: dict[str, str]
    """The ids of runs: `sums`, `careless`, `shop` and `hostile`."""
    lab: Lab | None = None
    """The server behind it; None over folders."""


class LocalRuns(NamedTuple):
    folder: Path
    runs: dict[str, str]
    live: LiveRun


@pytest.fixture(scope="session")
def local_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRuns]:
    """As in a folder of runs; `careless` has a long log, and `live` is being played."""
    folder = tmp_path_factory.mktemp("local")
    sums = play_sums(folder)
    careless = play_sums(folder, "careless", mistakes=3)
    write_log(careless.folder, LOG_LINES)
    played = {"sums": sums, "careless": careless, "shop": play_shop(folder), "hostile": play_hostile(folder)}
    with LiveRun.copy_of(sums.folder, "live") as live:
        runs = {name: result.folder.name for name, result in played.items()} | {"live": "live"}
        yield LocalRuns(folder, runs, live)


@pytest.fixture(scope="session")
def folder_site(local_runs: LocalRuns) -> Iterator[RunSite]:
    with viewing(local_runs.folder) as url:
        yield RunSite(url, local_runs.runs)


@pytest.fixture(scope="session", params=[pytest.param("folders", marks=pytest.mark.slow), "server"])
def site(request: pytest.FixtureRequest) -> RunSite:
    if request.param == "folders":
        return request.getfixturevalue("folder_site")  # type: ignore[no-any-return]
    lab: Lab = request.getfixturevalue("lab")
    return RunSite(lab.url, lab.runs, lab)


VisitRun = Callable[..., Page]


def open_pages(site: RunSite, browser: Browser, opened: ExitStack) -> VisitRun:
    def visit(path: str, *, expected: str = "", **options: Any) -> Page:
        page, watch = opened.enter_context(opened_page(browser, site.url, **options))
        if site.lab is not None:
            log_in(page, site.lab, "ada")
        if expected:
            watch.expect(expected)
        page.goto(path.format(**site.runs))
        settle(page)
        return page

    return visit


@pytest.fixture
def visit(site: RunSite, browser: Browser) -> Iterator[VisitRun]:
    """Open a page of the site as somebody who sees its runs; it is checked when the test ends."""
    with ExitStack() as opened:
        yield open_pages(site, browser, opened)


@pytest.fixture
def visit_folder(folder_site: RunSite, browser: Browser) -> Iterator[VisitRun]:
    with ExitStack() as opened:
        yield open_pages(folder_site, browser, opened)


def check_look(page: Page, name: str) -> None:
    """Nothing serious for axe, and nothing that makes a phone scroll sideways."""
    take_screenshot(page, f"{name}-desktop")
    assert find_violations(page) == []
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.wait_for_timeout(100)
    take_screenshot(page, f"{name}-phone")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture
def own_runs(lab: Lab) -> Iterator[OwnRuns]:
    """Runs of ada's that a test may change."""
    runs = OwnRuns(lab)
    yield runs
    runs.delete_all()
