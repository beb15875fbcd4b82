"""A page whose script is not loaded yet, opened while the server is away."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from tests.web.browser import go_by_keys, opened_page
from tests.web.conftest import settle
from tests.web.site import Site


def test_a_page_that_cannot_be_loaded_says_so_and_opens_once_the_server_is_back(
    site: Site, browser: Browser
) -> None:
    with opened_page(browser, site.url) as (page, watch):
        watch.expect("ERR_INTERNET_DISCONNECTED|ServerAwayError")
        page.goto("/")
        settle(page)

        page.context.set_offline(True)
        go_by_keys(page, "s", "/suites")
        failure = page.get_by_role("main")
        expect(failure).to_contain_text("This could not be loaded")
        failure.get_by_role("button", name="Try again").click()
        expect(failure).to_contain_text("The server does not answer")

        page.context.set_offline(False)
        failure.get_by_role("button", name="Try again").click()
        expect(page).to_have_url(re.compile("/suites$"))
        expect(page.get_by_role("grid", name="Suites")).to_be_visible()
