"""A filled server for each worker, Chromium for each module, and a watched page for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page

from proctor.api.session import build_login_link
from tests.server.serving import serving, settings_in
from tests.web.browser import PATIENCE_MS, PageWatch, launched_browser, opened_page
from tests.web.lab import Lab, fill_lab
from tests.web.site import viewing
from tests.web.traced_runs import TraceSite, play_traces

GROUP = "browser"
"""All tests with a browser share one worker, and so one server."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(GROUP))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    with serving(settings_in(folder)) as server:
        yield fill_lab(server, folder / "runs")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For one module only: while it runs, asyncio.run() fails in this thread."""
    with launched_browser() as launched:
        yield launched


@pytest.fixture(scope="session", params=["folders"])
def traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceSite]:
    """Rollouts of every shape, over each store that has them."""
    folder = tmp_path_factory.mktemp("traces")
    rollouts = play_traces(folder)
    with viewing(folder) as url:
        yield TraceSite(url, rollouts)


class Visit(NamedTuple):
    """A page, and what it must not do."""

    page: Page
    watch: PageWatch


OpenAs = Callable[..., Visit]


@pytest.fixture
def open_as(lab: Lab, browser: Browser) -> Iterator[OpenAs]:
    """Open a page as one of the lab's people, or as nobody; it is checked when the test ends."""
    with ExitStack() as opened:

        def open_one(person: str | None, path: str = "/", **options: Any) -> Visit:
            visit = Visit(*opened.enter_context(opened_page(browser, lab.url, **options)))
            if person is not None:
                log_in(visit.page, lab, person)
            visit.page.goto(path)
            return visit

        yield open_one


OpenTrace = Callable[..., Visit]


@pytest.fixture
def open_trace(traces: TraceSite, browser: Browser) -> Iterator[OpenTrace]:
    """Open a page of these rollouts; it is checked when the test ends."""
    with ExitStack() as opened:

        def open_one(path: str, **options: Any) -> Visit:
            visit = Visit(*opened.enter_context(opened_page(browser, traces.url, **options)))
            visit.page.goto(path)
            visit.page.get_by_role("article").first.wait_for(timeout=PATIENCE_MS)
            return visit

        yield open_one


def log_in(page: Page, lab: Lab, person: str) -> None:
    """By the API, as the login page does it; the page has a test of its own."""
    answer = page.request.post(
        "/api/v1/session", data={"token": lab.people[person].token}, headers={"origin": lab.url}
    )
    assert answer.ok, answer.text()


def login_link(lab: Lab, person: str) -> str:
    return build_login_link(lab.url, lab.people[person].post("/session/codes")["code"])


@pytest.fixture
def page(open_as: OpenAs) -> Page:
    """A page of ada's."""
    return open_as("ada").page


def settle(page: Page) -> None:
    """Wait until a page has loaded what it shows. An event stream never ends, so not until all is silent."""
    page.get_by_role("main").wait_for(timeout=PATIENCE_MS)
    page.locator("[aria-busy=true]").wait_for(state="detached", timeout=PATIENCE_MS)
