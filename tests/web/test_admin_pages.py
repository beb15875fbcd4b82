"""Administration: users and their logins, prices, hosts, balances, the audit log; and who sees none of it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.server.serving import Api
from tests.web.browser import DESKTOP, PHONE, THEMES, find_violations, opened_page, take_screenshot
from tests.web.conftest import OpenAs, settle
from tests.web.office import HOSTILE, Office
from tests.web.test_settings_pages import row, tab_to

PARTS = ("", "/models", "/hosts", "/sources", "/storage", "/balances", "/audit")
PATIENT_MS = 30_000


def press(page: Page, target: Locator) -> None:
    tab_to(page, target)
    page.keyboard.press("Enter")


def test_an_admin_invites_a_user_by_keyboard_alone_and_a_stolen_link_is_worthless(
    office: Office, open_office: OpenAs, browser: Browser
) -> None:
    page = open_office("root", "/admin").page
    press(page, page.get_by_role("button", name="Add a user"))
    tab_to(page, page.get_by_role("textbox", name="Name"))
    page.keyboard.type("nina")
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog", name="Login link for nina")
    link = shown.locator("code").inner_text()
    press(page, shown.get_by_role("button", name="Done"))
    expect(row(page, "Users", "nina")).to_contain_text("Active")
    page.reload()
    settle(page)
    assert link.partition("code=")[2] not in page.content()

    with opened_page(browser, office.url) as (guest, watch):
        watch.expect("401")  # the feed, before the login
        guest.goto(link)
        expect(guest.get_by_role("button", name="Account: nina")).to_be_visible()
    with opened_page(browser, office.url) as (thief, watch):
        watch.expect("401")
        thief.goto(link)
        expect(thief.get_by_text("This link no longer works")).to_be_visible()

    page.goto("/admin/audit?target=nina")
    for action in ("user.add", "user.invite", "login.open"):
        expect(row(page, "Audit log", action)).to_contain_text("nina")


def test_the_last_admin_cannot_be_lost(office: Office, open_office: OpenAs) -> None:
    page = open_office("root", "/admin").page
    for deed in ("Suspend: root", "Make an ordinary user: root"):
        button = page.get_by_role("button", name=deed)
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(button).to_have_accessible_description(re.compile("only active admin"))
    assert office.server.root("PATCH", "/users/root?disabled=true").code == "last_admin"


def test_a_suspended_user_is_out_at_once_until_they_are_reactivated(
    office: Office, open_office: OpenAs
) -> None:
    page = open_office("root", "/admin").page
    victim, watch = open_office("sid", "/settings/tokens")
    watch.expect("401")
    page.get_by_role("button", name="Suspend: sid").click()
    page.get_by_role("dialog", name="Suspend sid?").get_by_role("button", name="Suspend").click()
    expect(row(page, "Users", "sid")).to_contain_text("Suspended")
    assert office.people["sid"]("GET", "/whoami").code == "user_disabled"
    victim.goto("/settings/teams")
    expect(victim).to_have_url(re.compile(r"/login\?next=/settings/teams|/settings/teams"))
    expect(victim.get_by_label("Token").or_(victim.get_by_text("You are not logged in"))).to_be_visible()

    page.get_by_role("button", name="Reactivate: sid").click()
    expect(row(page, "Users", "sid")).to_contain_text("Active")
    page.get_by_role("button", name="Create a token: sid").click()
    page.get_by_role("dialog").get_by_role("button", name="Create a token").click()
    shown = page.get_by_role("dialog", name="Token of sid")
    secret = shown.locator("code").inner_text()
    assert Api(office.url, secret).get("/whoami")["user"]["name"] == "sid"


@pytest.mark.parametrize("person", ["lena", None])
def test_others_see_why_and_nothing_else(office: Office, open_office: OpenAs, person: str | None) -> None:
    page, watch = open_office(person, "/admin/audit")
    watch.expect("401")
    why = "These pages are for admins of the server" if person else "You are not logged in"
    expect(page.get_by_role("heading", name=why)).to_be_visible()
    expect(page.get_by_role("table")).to_have_count(0)
    if person:
        page.get_by_role("button", name=f"Account: {person}").click()
        expect(page.get_by_role("menuitem", name="Settings")).to_be_visible()
        expect(page.get_by_role("menuitem", name="Admin")).to_have_count(0)


def test_prices_and_grants_take_effect_and_are_seen_by_others(open_office: OpenAs) -> None:
    page = open_office("root", "/admin/models").page
    other = open_office("mo", "/settings/usage").page
    page.get_by_role("button", name="Set price of parrot").click()
    page.get_by_label("Input", exact=True).fill("1.5")
    page.get_by_label("Output", exact=True).fill("6")
    page.get_by_role("button", name="Save").click()
    expect(row(page, "Models and prices", "parrot")).to_contain_text("Set here")
    expect(row(page, "Models and prices", "parrot")).to_contain_text("$1.50")
    page.get_by_role("button", name="Remove the price of parrot").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row(page, "Models and prices", "parrot")).not_to_contain_text("$1.50")

    page.get_by_role("link", name="Balances").click()
    expect(other.get_by_text("No limit")).to_be_visible()
    page.get_by_role("button", name="Grant to mo").click()
    page.get_by_label("Amount in dollars").fill("7")
    page.get_by_role("dialog").get_by_role("button", name="Grant").click()
    expect(row(page, "Balances", "mo")).to_contain_text("$7.00")
    expect(other.get_by_text("$7.00").first).to_be_visible()  # by the feed, without a reload


def test_a_run_leaves_the_queue_for_its_host_while_the_page_is_open(
    office: Office, open_office: OpenAs
) -> None:
    page = open_office("root", "/admin/hosts").page
    expect(row(page, "Queue", HOSTILE)).to_contain_text("No host that can play runs is connected")
    assert page.evaluate("window.harmed") is None

    office.play("gpu-1")

    expect(row(page, "Hosts", "gpu-1")).to_contain_text(HOSTILE, timeout=PATIENT_MS)
    expect(page.get_by_text("Nothing waits.")).to_be_visible()


def test_the_audit_log_is_narrowed_by_its_address_and_has_no_secrets(
    office: Office, open_office: OpenAs
) -> None:
    page = open_office("root", "/admin/audit").page
    page.get_by_label("Who").select_option("lena")
    page.get_by_label("Action").select_option("Secret")
    expect(page).to_have_url(re.compile(r"user=lena.*action=secret\."))
    expect(page.get_by_role("table", name="Audit log").get_by_role("row")).to_have_count(2)
    expect(row(page, "Audit log", "secret.add")).to_contain_text("lena SHARED_KEY")
    page.get_by_label("Action").select_option("Token")
    expect(row(page, "Audit log", "token.add").first).to_contain_text(HOSTILE)
    page.get_by_role("textbox", name="Target").fill("nothing of that name")
    expect(page.get_by_text("Nothing was changed that matches.")).to_be_visible()
    assert "never-shown" not in str(office.server.root.get("/audit?limit=1000"))


@pytest.mark.parametrize("theme", THEMES)
def test_every_part_can_be_read_by_every_admin(open_office: OpenAs, theme: str) -> None:
    for viewport, size in ((DESKTOP, "desktop"), (PHONE, "phone")):
        page = open_office("root", "/admin", theme=theme, viewport=viewport).page
        for part in PARTS:
            page.goto(f"/admin{part}")
            settle(page)
            page.get_by_role("main").get_by_role("heading", level=2).first.wait_for()
            take_screenshot(page, f"admin{part.replace('/', '-')}-{theme}-{size}")
            assert find_violations(page) == [], part
            assert page.evaluate("document.querySelector('main').scrollWidth - innerWidth") <= 0, part
