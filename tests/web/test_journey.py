"""A new server, as its first people live it: logged in by link, pushed to, watched in a browser.

Everything is the real thing: the server in a process of its own, its host, the command line, Chromium.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.server.workplace import Person, Workplace, workplace
from tests.web.browser import opened_page, take_screenshot

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("browser")]

PLAYED_MS = 120_000
"""A hosted run installs its environment in a sandbox; on a busy machine that takes long."""


@pytest.fixture(scope="module")
def place(sandboxes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    with workplace(tmp_path_factory.mktemp("journey")) as made:
        yield made


def dashboard_link(person: Person) -> str:
    """As `proctor dashboard` prints it."""
    said = person.ok("dashboard", "--no-browser").stdout
    found = re.search(r"http://\S+#code=\S+", said)
    assert found, said
    return found[0]


def log_in_admin(place: Workplace) -> Person:
    root = Person(place.folder / "root", place.url)
    root.ok("login", place.url, "--token-file", str(place.data / "admin-token"))
    return root


def press_until(page: Page, key: str, target: Locator, most: int = 80) -> None:
    """A key, until a control has the focus."""
    for _ in range(most):
        page.keyboard.press(key)
        if target.evaluate("control => control === document.activeElement"):
            return
    raise AssertionError(f"{target} is not reached by {key}")


def activate(page: Page, target: Locator) -> None:
    """By the keyboard alone."""
    press_until(page, "Tab", target)
    page.keyboard.press("Enter")


def test_from_a_new_server_to_a_shared_comparison(place: Workplace, browser: Browser) -> None:
    root = log_in_admin(place)
    with opened_page(browser, place.url) as (page, watch):
        watch.expect("401")  # of the feed, before the login
        page.goto(dashboard_link(root))
        page.get_by_role("heading", name="Nothing has been evaluated here yet").wait_for()
        expect(page.get_by_role("main")).to_contain_text(f"proctor login {place.url}")
        links = {name: invite(page, name) for name in ("ada", "rita", "sam")}

    ada = Person(place.folder / "ada", place.url)
    with opened_page(browser, place.url) as (page, watch):
        watch.expect("401")
        page.goto(links["ada"])
        expect(page.get_by_role("button", name="Account: ada")).to_be_visible()
        ada.ok("login", place.url, stdin=f"{make_token(page)}\n")
        ada.write_environment()
        ada.ok("env", "push", "sums")
        page.goto("/")
        ada.ok("eval", "run", "ada/sums", "--hosted", "-m", "parrot", "-n", "4", "--eval-name", "first")
        first = page.get_by_role("link", name="first")
        first.wait_for(timeout=PLAYED_MS)  # by the feed
        first.click()
        page.get_by_text("Finished").first.wait_for(timeout=PLAYED_MS)

        start_by_keyboard(page)
        page.get_by_role("link", name="second").click()
        page.get_by_text("Finished").first.wait_for(timeout=PLAYED_MS)
        second = page.url
        read_worst_rollout(page, second)
        page.goto("/runs")
        page.get_by_role("row").nth(2).wait_for()
        for key in "jxjxc":
            page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1)).to_contain_text("Compare")
        expect(page.get_by_text(re.compile("no difference|too little", re.IGNORECASE)).first).to_be_visible()
        take_screenshot(page, "journey-compare")
        page.goto(second)
        share_with_readers(page)
    ada.ok("env", "share", "ada/sums", "rita", "--role", "read")

    with opened_page(browser, place.url) as (page, watch):
        watch.expect("401")
        page.goto(links["rita"])
        expect(page.get_by_role("button", name="Account: rita")).to_be_visible()
        page.goto(second)
        expect(page.get_by_role("heading", name="second")).to_be_visible()
        delete = page.get_by_role("button", name="Delete", exact=True)
        expect(delete).to_have_attribute("aria-disabled", "true")
        expect(delete).to_have_accessible_description(re.compile("ada"))
    with opened_page(browser, place.url) as (page, watch):
        watch.expect("40[14]")
        page.goto(links["sam"])
        expect(page.get_by_role("button", name="Account: sam")).to_be_visible()
        page.goto(second)
        expect(
            page.get_by_role("heading", name=re.compile("Not there|Not found|not for you"))
        ).to_be_visible()
    with opened_page(browser, place.url) as (page, watch):
        watch.expect("401")
        page.goto(links["sam"])
        expect(page.get_by_text("This link no longer works")).to_be_visible()


def invite(page: Page, name: str) -> str:
    """As an admin; the link to hand over."""
    page.goto("/admin")
    page.get_by_role("button", name="Add a user").click()
    page.get_by_role("textbox", name="Name").fill(name)
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog", name=f"Login link for {name}")
    link = shown.locator("code").inner_text()
    shown.get_by_role("button", name="Done").click()
    return link


def make_token(page: Page) -> str:
    """For the command line, on the page of one's tokens."""
    page.goto("/settings/tokens")
    page.get_by_role("button", name="Create a token").click()
    page.get_by_role("textbox", name="Name").fill("laptop")
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog").locator("code").first
    expect(shown).to_contain_text("proctor_")
    return shown.inner_text()


def start_by_keyboard(page: Page) -> None:
    page.goto("/e/ada/sums/run?model=parrot&step=configure")
    expect(page.get_by_role("heading", name="Configure")).to_be_visible()
    press_until(page, "Tab", page.get_by_label("Tasks", exact=True))
    page.keyboard.type("4")
    press_until(page, "Tab", page.get_by_label("Name of the run"))
    page.keyboard.type("second")
    page.keyboard.press("Enter")
    start = page.get_by_role("button", name="Start run")
    expect(start).not_to_have_attribute("aria-disabled", "true")
    activate(page, start)
    expect(page).to_have_url(re.compile(r"/runs\?new=run-"))


def read_worst_rollout(page: Page, run: str) -> None:
    page.goto(f"{run}/samples?sort=reward")
    page.get_by_role("grid").get_by_role("row").nth(1).wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Conversation")).to_be_visible()


def share_with_readers(page: Page) -> None:
    page.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog", name="Who may read this run")
    dialog.get_by_label("Readers").select_option("readers")
    with page.expect_response(lambda answer: answer.url.endswith("/visibility") and answer.ok):
        dialog.get_by_role("button", name="Save").click()
