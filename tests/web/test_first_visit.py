"""The first visit of a server: the commands that fill it, the example evaluation, and the login page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from proctor.api.session import build_login_link
from tests.server.serving import Served, serving, settings_in
from tests.server.test_example import SCRIPTED_LOCAL, connect_host
from tests.web.browser import PHONE, THEMES, find_violations, opened_page, take_screenshot
from tests.web.conftest import start_session

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("new")
    (folder / "endpoints.toml").write_text(SCRIPTED_LOCAL)
    with serving(settings_in(folder, endpoints=folder / "endpoints.toml")) as served:
        yield served


def open_home(page: Page, server: Served, token: str) -> None:
    start_session(page, server.url, token)
    page.goto("/")
    page.get_by_role("heading", name="Nothing has been evaluated here yet").wait_for()


def test_an_empty_server_offers_its_commands_and_an_example_to_run(server: Served, browser: Browser) -> None:
    ada = server.user("ada")
    with opened_page(browser, server.url) as (page, _):
        open_home(page, server, ada.token)
        expect(page.get_by_role("main")).to_contain_text(f"proctor login {server.url}")
        button = page.get_by_role("button", name="Run the example evaluation")
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(button).to_have_accessible_description(re.compile("No host that can play runs is connected"))

        connect_host(server)
        expect(button).not_to_have_attribute("aria-disabled", "true")  # asked again by itself
        take_screenshot(page, "first-visit")
        button.focus()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/runs\?new=run-"))
        row = page.get_by_role("row").filter(has_text="capitals-example")
        expect(row).to_have_class(re.compile("highlighted"))
    assert len(ada.get("/runs")["items"]) == 1


@pytest.mark.parametrize("theme", THEMES)
def test_the_first_visit_and_the_login_page_are_readable_everywhere(
    server: Served, browser: Browser, theme: str
) -> None:
    new = server.user(f"new-{theme}")
    for name, size in (("desktop", None), ("phone", PHONE)):
        with opened_page(browser, server.url, theme=theme, viewport=size) as (page, watch):
            watch.expect("401")  # of the feed, before the login
            page.goto("/login")
            page.get_by_text("Neither works?").click()
            page.get_by_text("every token is lost").wait_for()
            take_screenshot(page, f"login-{name}-{theme}")
            assert find_violations(page) == []
            open_home(page, server, new.token)
            page.get_by_role("button", name="Run the example evaluation").wait_for()
            take_screenshot(page, f"first-visit-{name}-{theme}")
            assert find_violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_link_works_once_and_says_how_to_get_another(server: Served, browser: Browser) -> None:
    link = build_login_link(server.url, server.root.post("/session/codes")["code"])
    with opened_page(browser, server.url) as (page, watch):
        watch.expect("401")  # of the feed, before the login
        page.goto(link)
        page.get_by_role("button", name="Account: root").wait_for()
    with opened_page(browser, server.url) as (page, watch):
        watch.expect("Failed to load resource")
        page.goto(link)
        page.get_by_text("This link no longer works").wait_for()
        expect(page.get_by_role("main")).to_contain_text(f"proctor dashboard {server.url}")
        page.get_by_label("Token").fill("proctor_nonsense")
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("This link no longer works").wait_for(state="detached")
        expect(page.get_by_label("Token")).to_have_attribute("aria-invalid", "true")


def test_every_empty_list_says_the_command_that_fills_it(server: Served, browser: Browser) -> None:
    new = server.user("nobody-yet")
    with opened_page(browser, server.url) as (page, _):
        start_session(page, server.url, new.token)
        for path, command in (
            ("/runs", "proctor eval run"),
            ("/suites", "proctor eval run suite.toml"),
            ("/datasets", "proctor dataset push"),
            ("/sources", "proctor source add"),
        ):
            page.goto(path)
            expect(page.get_by_role("main")).to_contain_text(command)
