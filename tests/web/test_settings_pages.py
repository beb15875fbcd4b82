"""Settings: profile, tokens, teams, secrets, usage, as their owner, a team-mate and a stranger see them."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from playwright.sync_api import Error, Locator, Page, Response, expect

from tests.server.serving import Api
from tests.web.browser import DESKTOP, PATIENCE_MS, PHONE, THEMES, find_violations, take_screenshot
from tests.web.conftest import OpenAs, settle
from tests.web.office import HOSTILE, Office

PARTS = ("", "/tokens", "/teams", "/secrets", "/usage")
MOST_TABS = 60


def row(page: Page, table: str, text: str) -> Locator:
    return page.get_by_role("table", name=table).get_by_role("row").filter(has_text=text)


def tab_to(page: Page, target: Locator) -> None:
    """By keyboard alone."""
    for _ in range(MOST_TABS):
        if target.evaluate("each => each === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{target} is not reached by the Tab key")


def test_a_token_is_made_by_keyboard_alone_shown_once_and_revoked(
    office: Office, open_office: OpenAs
) -> None:
    page = open_office("lena", "/settings/tokens").page
    tab_to(page, page.get_by_role("button", name="Create a token"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Create a token")
    tab_to(page, dialog.get_by_label("Name"))
    page.keyboard.type("ci")
    tab_to(page, dialog.get_by_label("Scopes"))
    page.keyboard.press("ArrowDown")
    tab_to(page, dialog.get_by_label("Read runs, balances and usage"))
    page.keyboard.press("Space")
    page.keyboard.press("Enter")

    shown = page.get_by_role("dialog", name="Your new token")
    secret = shown.locator("code").inner_text()
    expect(shown.get_by_role("button", name="Copy the token")).to_be_visible()
    api = Api(office.url, secret)
    assert api("GET", "/runs").status == 200
    assert api("GET", "/secrets").code == "missing_scope"
    tab_to(page, shown.get_by_role("button", name="Done"))
    page.keyboard.press("Enter")
    expect(shown).to_have_count(0)
    expect(row(page, "Tokens", "ci")).to_contain_text("runs:read")
    page.reload()
    settle(page)
    assert secret not in page.content()

    tab_to(page, page.get_by_role("button", name="Revoke ci", exact=True))
    page.keyboard.press("Enter")
    question = page.get_by_role("dialog", name="Revoke ci?")
    tab_to(page, question.get_by_role("button", name="Revoke"))
    page.keyboard.press("Enter")
    expect(question).to_have_count(0)
    expect(row(page, "Tokens", "runs:read").filter(has_text="ci")).to_have_count(0)
    assert api("GET", "/runs").code == "token_revoked"


def test_the_value_of_a_secret_is_in_no_answer_and_on_no_page(office: Office, open_office: OpenAs) -> None:
    page, watch = open_office("lena", "/settings/secrets?environment=lena/sums")
    bodies: list[str] = []

    def keep(response: Response) -> None:
        if "json" in response.headers.get("content-type", ""):
            with suppress(Error):  # a reload has taken it away
                bodies.append(response.text())

    page.on("response", keep)
    page.get_by_role("button", name="Add a secret").first.click()
    dialog = page.get_by_role("dialog", name="Add a secret")
    dialog.get_by_label("Name").fill("wrong name")
    dialog.get_by_label("Value").fill("never-shown-2")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_text("cannot be the name of a secret")).to_be_visible()
    watch.expect("422")
    dialog.get_by_label("Name").fill("API_KEY")
    dialog.get_by_role("button", name="Add").click()
    expect(row(page, "Your secrets", "API_KEY")).to_contain_text("No environment")

    page.get_by_role("button", name="Link one of yours").click()
    page.get_by_label("Secret", exact=True).select_option(label="API_KEY (lena)")
    page.get_by_role("button", name="Link", exact=True).click()
    expect(row(page, "Your secrets", "API_KEY")).to_contain_text("lena/sums")
    expect(row(page, "Secrets and variables of an environment", "API_KEY")).to_contain_text("Linked secret")
    expect(row(page, "Secrets and variables of an environment", "API_KEY")).to_contain_text("not shown")

    page.get_by_role("button", name="Replace API_KEY").click()
    page.get_by_label("Value").fill("never-shown-3")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.reload()
    settle(page)
    page.get_by_role("button", name="Delete API_KEY").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row(page, "Your secrets", "API_KEY")).to_have_count(0)
    expect(row(page, "Secrets and variables of an environment", "API_KEY")).to_have_count(0)

    assert any("API_KEY" in body for body in bodies)
    assert not any("never-shown" in text for text in (*bodies, page.content()))


def test_a_team_is_run_by_its_owner_and_watched_by_its_members(open_office: OpenAs) -> None:
    page, watch = open_office("lena", "/settings/teams")
    other, other_watch = open_office("mo", "/settings/teams")
    other_watch.expect("404")  # the members of a team that is just being renamed or deleted
    page.get_by_role("button", name="Create a team").click()
    page.get_by_role("textbox", name="Name").fill("lena")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("not available")
    watch.expect("409|404")
    page.get_by_role("textbox", name="Name").fill("lab")
    page.get_by_role("button", name="Create", exact=True).click()

    page.get_by_role("button", name="Add a member to lab").click()
    page.get_by_role("textbox", name="Member").fill("nobody")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("There is no user 'nobody'")
    page.get_by_role("textbox", name="Member").fill("mo")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(row(page, "lab", "mo")).to_be_visible()

    expect(other.get_by_role("heading", name="lab")).to_be_visible()  # by the feed, without a reload
    refused = other.get_by_role("button", name="Delete lab")
    expect(refused).to_have_attribute("aria-disabled", "true")
    expect(refused).to_have_accessible_description("Only admins of the team may do this: lena.")
    refused.click(force=True)
    expect(other.get_by_role("dialog")).to_have_count(0)

    page.get_by_label("Role of mo").nth(0).select_option("admin")
    expect(refused).not_to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="Rename lab").click()
    page.get_by_role("textbox", name="Name").fill("works")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(other.get_by_role("heading", name="works")).to_be_visible()
    page.get_by_role("button", name="Delete works").click()
    question = page.get_by_role("dialog", name="Delete works?")
    expect(question.get_by_role("button", name="Delete")).to_be_disabled()
    question.get_by_label("Type works to confirm").fill("works")
    question.get_by_role("button", name="Delete").click()
    expect(other.get_by_role("heading", name="works")).to_have_count(0)


def test_what_was_used_is_a_chart_and_a_table(open_office: OpenAs) -> None:
    page = open_office("lena", "/settings/usage").page
    expect(page.get_by_text("$20.00").first).to_be_visible()
    chart = page.get_by_role("img", name=re.compile("^Usage by day"))
    expect(chart).to_have_accessible_name(re.compile(r"\$3\.00 and 24 requests in 30 days"))
    expect(row(page, "Total", "strong")).to_contain_text("12")
    page.get_by_role("button", name="Show as table").click()
    expect(page.get_by_role("table", name="Usage by day").get_by_role("row")).to_have_count(31)

    page.get_by_text("Run", exact=True).first.click()
    expect(row(page, "Total", "outside runs")).to_be_visible()
    expect(page).to_have_url(re.compile("group=run"))
    page.reload()
    settle(page)
    expect(row(page, "Total", "run-old")).to_be_visible()


def test_hostile_names_are_only_text(open_office: OpenAs) -> None:
    for part in ("/tokens", "/secrets?environment=lena/sums", "/usage"):
        page = open_office("lena", f"/settings{part}").page
        expect(page.get_by_text(HOSTILE).first).to_be_visible()
        assert page.evaluate("window.harmed") is None


def test_nobody_and_an_ended_session_are_asked_to_log_in(office: Office, open_office: OpenAs) -> None:
    page, watch = open_office(None, "/settings/tokens")
    watch.expect("401")
    expect(page.get_by_role("heading", name="You are not logged in")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="Log in").click()
    expect(page).to_have_url(re.compile(r"/login\?next=/settings/tokens"))

    token = office.people["sid"].post("/tokens", {"name": "short"})
    visitor, watch = open_office(None, "/login?next=/settings/tokens")
    visitor.get_by_label("Token").fill(token["secret"])
    visitor.get_by_role("button", name="Log in").click()
    expect(row(visitor, "Tokens", "short")).to_contain_text("This browser")
    watch.expect("401")
    office.people["sid"].ok("DELETE", f"/tokens/{token['token']['id']}")
    visitor.get_by_role("button", name="Create a token").click()
    visitor.get_by_role("dialog").get_by_role("button", name="Create a token").click()
    expect(
        visitor.get_by_text("revoked").or_(visitor.get_by_label("Token", exact=True)).first
    ).to_be_visible()


def test_a_session_that_may_not_says_why(office: Office, open_office: OpenAs) -> None:
    limited = office.people["sid"].post("/tokens", {"scopes": ["environments:read", "runs:read"]})["secret"]
    office.people["limited"] = Api(office.url, limited)
    page = open_office("limited", "/settings/tokens").page
    create = page.get_by_role("button", name="Create a token")
    expect(create).to_have_attribute("aria-disabled", "true")
    expect(create).to_have_accessible_description(re.compile("tokens:write"))
    page.goto("/settings")
    expect(row(page, "What this session may do", "runs:write")).to_contain_text("Log in with a token")


@pytest.mark.parametrize("theme", THEMES)
def test_every_part_can_be_read_by_everyone(open_office: OpenAs, theme: str) -> None:
    for viewport, size in ((DESKTOP, "desktop"), (PHONE, "phone")):
        page = open_office("lena", "/settings", theme=theme, viewport=viewport).page
        for part in PARTS:
            page.goto(f"/settings{part}")
            settle(page)
            page.get_by_role("table").or_(page.get_by_role("heading", level=2)).first.wait_for(
                timeout=PATIENCE_MS
            )
            take_screenshot(page, f"settings{part.replace('/', '-')}-{theme}-{size}")
            assert find_violations(page) == [], part
            assert page.evaluate("document.querySelector('main').scrollWidth - innerWidth") <= 0, part
