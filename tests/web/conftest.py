"""A filled server for each worker, Chromium for each module, and a watched page for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page

from proctor.api.session import build_login_link
from tests.server.serving import serving, settings_in
from tests.web.browser import PATIENCE_MS, PageWatch, launched_browser, opened_page
from tests.web.lab import MODELS, Lab, fill_lab, upload_folder
from tests.web.office import Office, opened_office
from tests.web.rival_runs import play_rivals, play_sweep
from tests.web.site import Site, viewing
from tests.web.traced_runs import TraceSite, play_traces

GROUP = "browser"
"""All tests with a browser share one worker, and so one server."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(GROUP))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    endpoints = folder / "endpoints.toml"
    endpoints.write_text(MODELS)
    with serving(settings_in(folder, endpoints=endpoints)) as server:
        yield fill_lab(server, folder / "runs")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For one module only: while it runs, asyncio.run() fails in this thread."""
    with launched_browser() as launched:
        yield launched


class Traces(NamedTuple):
    folder: Path
    rollouts: dict[str, str]


@pytest.fixture(scope="session")
def played_traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    folder = tmp_path_factory.mktemp("traces")
    return Traces(folder, play_traces(folder))


@pytest.fixture(scope="session", params=["folders", pytest.param("server", marks=pytest.mark.slow)])
def traces(
    request: pytest.FixtureRequest, played_traces: Traces, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TraceSite]:
    """Rollouts of every shape, over each store that has them."""
    if request.param == "folders":
        with viewing(played_traces.folder) as url:
            yield TraceSite(url, played_traces.rollouts)
        return
    with serving(settings_in(tmp_path_factory.mktemp("traces-server"))) as server:
        api = server.root
        ids = {
            path.parent.name: upload_folder(api, path.parent) for path in find_metadata(played_traces.folder)
        }
        yield TraceSite(server.url, rename_runs(played_traces.rollouts, ids), api.token)


def rename_runs(rollouts: Mapping[str, str], ids: Mapping[str, str]) -> dict[str, str]:
    parts = {name: address.partition("/") for name, address in rollouts.items()}
    return {name: f"{ids[run]}/{rest}" for name, (run, _, rest) in parts.items()}


@pytest.fixture(scope="session")
def rivals(tmp_path_factory: pytest.TempPathFactory) -> Rivals:
    """Runs to compare and a sweep, in a folder."""
    folder = tmp_path_factory.mktemp("rivals")
    suite = play_sweep(folder / "sweep")
    return Rivals(folder, play_rivals(folder), suite)


class Rivals(NamedTuple):
    folder: Path
    runs: dict[str, str]
    suite: str


@pytest.fixture(scope="session", params=["folders", pytest.param("server", marks=pytest.mark.slow)])
def site(
    request: pytest.FixtureRequest, rivals: Rivals, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Pages over each store that has the runs."""
    if request.param == "folders":
        with viewing(rivals.folder / "outputs", rivals.folder / "sweep") as url:
            yield Site(url, rivals.runs, rivals.suite, "words")
        return
    with serving(settings_in(tmp_path_factory.mktemp("rivals-server"))) as server:
        api = server.root
        ids = {path.parent.name: upload_folder(api, path.parent) for path in find_metadata(rivals.folder)}
        runs = {name: ids[folder_id] for name, folder_id in rivals.runs.items()}
        environment = api.ok("GET", f"/runs/{runs['careful']}")["environment"]
        yield Site(server.url, runs, rivals.suite, str(environment), 1, api.token, ids)


def find_metadata(folder: Path) -> list[Path]:
    """In the order the runs were played."""
    return sorted(folder.rglob("metadata.json"), key=lambda path: path.stat().st_mtime)


VisitSite = Callable[..., Page]


@pytest.fixture
def visit(site: Site, browser: Browser) -> Iterator[VisitSite]:
    """Open a page of the site; it is checked when the test ends."""
    with ExitStack() as opened:

        def visit_one(path: str, **options: Any) -> Page:
            page, _ = opened.enter_context(opened_page(browser, site.url, **options))
            if site.token:
                start_session(page, site.url, site.token)
            page.goto(path)
            settle(page)
            return page

        yield visit_one


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


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A server whose people and settings a module's tests may change."""
    with opened_office(tmp_path_factory.mktemp("office")) as opened:
        yield opened


@pytest.fixture
def open_office(office: Office, browser: Browser) -> Iterator[OpenAs]:
    """Open a page as one of the office's people, or as nobody; it is checked when the test ends."""
    with ExitStack() as opened:

        def open_one(person: str | None, path: str = "/", **options: Any) -> Visit:
            visit = Visit(*opened.enter_context(opened_page(browser, office.url, **options)))
            if person is not None:
                start_session(visit.page, office.url, office.people[person].token)
            visit.page.goto(path)
            settle(visit.page)
            return visit

        yield open_one


OpenTrace = Callable[..., Visit]


@pytest.fixture
def open_trace(traces: TraceSite, browser: Browser) -> Iterator[OpenTrace]:
    """Open a page of these rollouts; it is checked when the test ends."""
    with ExitStack() as opened:

        def open_one(path: str, **options: Any) -> Visit:
            visit = Visit(*opened.enter_context(opened_page(browser, traces.url, **options)))
            if traces.token:
                start_session(visit.page, traces.url, traces.token)
            visit.page.goto(path)
            visit.page.get_by_role("article").first.wait_for(timeout=PATIENCE_MS)
            return visit

        yield open_one


def log_in(page: Page, lab: Lab, person: str) -> None:
    """By the API, as the login page does it; the page has a test of its own."""
    start_session(page, lab.url, lab.people[person].token)


def start_session(page: Page, url: str, token: str) -> None:
    answer = page.request.post("/api/v1/session", data={"token": token}, headers={"origin": url})
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
