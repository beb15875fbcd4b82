"""Environments in the browser: the catalogue, a page for each, and what happens when a session ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from proctor.server.people.tokens import make_token
from tests.server.hub.packages import made, push
from tests.server.serving import Api
from tests.web.browser import PATIENCE_MS, PHONE, THEMES, find_violations, go_by_keys, take_screenshot
from tests.web.conftest import OpenAs, settle
from tests.web.hostile_content import HOSTILE_TEXTS, MARK
from tests.web.lab import Lab

SHORT = {name: text for name, text in HOSTILE_TEXTS.items() if "\0" not in text and len(text) < 5000}
HOSTILE_README = "# Puzzles\n\nSome **bold** text.\n\n" + "\n\n".join(SHORT.values())
HOSTILE_NAME = SHORT["image handler"]
PROJECT = """
[tool.proctor]
tags = ["puzzle", "math"]
secrets = ["JUDGE_KEY", "SEARCH_KEY"]
"""
CHECK: dict[str, Any] = {
    "passed": True,
    "message": "It installs, loads and yields 2 tasks.",
    "tasks": 2,
    "seconds": 1.5,
    "log": "Installing …\n\x1b[32mdone\x1b[0m " + SHORT["script"],
    "task_list": [
        {"slug": "one", "prompt": "How many legs has a spider? " + SHORT["svg"]},
        {"slug": SHORT["right to left"], "template": "riddle", "args": {"level": 3}},
    ],
    "details": {
        "arguments": [
            {"name": "level", "type": "int", "default": "3"},
            {"name": HOSTILE_NAME, "type": SHORT["template"], "default": SHORT["closing tags"]},
            {"name": "path", "type": "str"},
        ],
        "defaults": {"num_examples": 5, SHORT["script"]: SHORT["javascript link"]},
        "kind": "SingleTurnEnv",
        "example": {"prompt": [{"role": "user", "text": SHORT["iframe"]}], "answer": "8"},
        "rewards": [{"name": "exact", "weight": 1.0}],
        "tools": [{"name": "look_up", "description": SHORT["image handler"]}],
    },
}


@pytest.fixture(scope="module")
def host(lab: Lab) -> Api:
    token = lab.server.platform.database.write_now(
        lambda connection: make_token(connection, kind="host", user=None, scopes=[], expires_at=None)
    )
    return Api(lab.url, token.secret, host_key="k" * 64)


@pytest.fixture(scope="module")
def puzzles(lab: Lab, host: Api, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of ada's, with two versions; rita may read it, sam may not."""
    folder = tmp_path_factory.mktemp("puzzles")
    ada = lab.people["ada"]
    for version in ("0.1.0", "0.2.0"):
        more = {
            "README.md": HOSTILE_README.encode(),
            "data/words.txt": b"one\ntwo\n",
            "data/raw.bin": b"\0\1",
        }
        pushed = push(
            ada, made(folder / version, name="puzzles", version=version, project=PROJECT, more=more)
        )
        assert pushed.status == 201, pushed.body
        report_checks(host)
    ada.ok("PUT", "/environments/ada/puzzles/collaborators", {"name": "rita", "role": "read"})
    secret = ada.post("/secrets", {"name": "SEARCH_KEY", "value": "swordfish"})
    ada.ok("PUT", f"/environments/ada/puzzles/secrets/links/{secret['id']}")
    return "/e/ada/puzzles"


def report_checks(host: Api, **changes: Any) -> None:
    while (claimed := host("POST", "/hosts/checks/claims", {})).status == 200:
        host.ok("POST", f"/hosts/checks/{claimed.body['version_id']}", {**CHECK, **changes})


def add_environment(lab: Lab, folder: Path, name: str) -> str:
    assert push(lab.people["ada"], made(folder, name=name)).status == 201
    return f"/e/ada/{name}"


def visit_tab(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Parts of the environment").get_by_role("link", name=name).click()
    settle(page)


def catalogue(page: Page) -> Any:
    return page.get_by_role("grid", name="Environments")


def test_the_catalogue_is_searched_filtered_and_walked_by_keyboard_alone(
    open_as: OpenAs, puzzles: str
) -> None:
    page = open_as("ada", "/runs").page
    settle(page)
    go_by_keys(page, "e", "/environments")
    expect(catalogue(page).get_by_role("row").filter(has_text="ada/puzzles")).to_contain_text("Passed")

    page.keyboard.press("/")
    page.keyboard.type("math")
    expect(page).to_have_url(re.compile(r"\?q=math$"))
    expect(catalogue(page).get_by_role("row")).to_have_count(2)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/e/ada/puzzles/readme$"))
    expect(page.get_by_role("heading", name="ada/puzzles")).to_be_visible()

    page.goto("/environments?tag=puzzle&owner=ada&mine=true&visibility=private&sort=name")
    expect(catalogue(page).get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name="Clear").click()
    expect(page).to_have_url(re.compile(r"/environments\?sort=name$"))


def test_a_filled_catalogue_says_how_to_push_another_one(open_as: OpenAs, puzzles: str) -> None:
    page = open_as("ada", "/environments", viewport=PHONE).page
    page.get_by_role("button", name="Push an environment").click()
    panel = page.get_by_role("dialog", name="Push an environment")
    expect(panel).to_contain_text("proctor env push my-env")
    commands = panel.get_by_role("region").bounding_box()
    copy = panel.get_by_role("button", name="Copy").bounding_box()
    assert commands is not None
    assert copy is not None
    assert commands["x"] + commands["width"] <= copy["x"]  # the button covers no command


def test_a_pasted_name_jumps_and_what_is_not_there_is_not_told_from_what_is_private(
    open_as: OpenAs, puzzles: str
) -> None:
    page = open_as("sam", "/environments").page
    settle(page)
    expect(page.get_by_text("ada/puzzles")).to_have_count(0)
    for slug in ("ada/puzzles", "ada/no-such-thing"):
        page.goto("/environments")
        page.get_by_role("searchbox").fill(slug)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Not there, or not for you")).to_be_visible()
        expect(page.get_by_text(f"There is no environment {slug} that you can read.")).to_be_visible()
        expect(page.get_by_text("ada can make it public or give you a role on it")).to_be_visible()
    assert find_violations(page) == []


@pytest.mark.parametrize("theme", THEMES)
def test_every_tab_shows_hostile_content_as_text_and_passes_axe(
    open_as: OpenAs, puzzles: str, theme: str
) -> None:
    page = open_as("ada", "/environments", theme=theme).page
    expect(catalogue(page).get_by_role("row").filter(has_text="ada/puzzles")).to_be_visible()
    take_screenshot(page, f"environments-{theme}")
    assert find_violations(page) == []
    page.goto(f"{puzzles}/readme")
    expect(page.get_by_role("heading", name="Puzzles", exact=True)).to_be_visible()
    expect(page.get_by_text(SHORT["script"]).first).to_be_visible()
    seen = {
        "Versions": page.get_by_role("region", name="Log of the check"),
        "Files": page.get_by_role("link", name="README.md"),
        "Arguments": page.get_by_role("row").filter(has_text=HOSTILE_NAME),
        "Tasks": page.get_by_text("How many legs has a spider?"),
        "Secrets": page.get_by_role("row").filter(has_text="SEARCH_KEY"),
        "Access": page.get_by_role("heading", name="Visibility"),
        "README": page.get_by_role("heading", name="About"),
    }
    for tab, shown in seen.items():
        visit_tab(page, tab)
        expect(shown.first).to_be_visible()
        take_screenshot(page, f"environment-{tab.lower()}-{theme}")
        assert find_violations(page) == [], tab
    assert page.evaluate(f"window['{MARK}']") is None
    assert page.locator("iframe, svg script, img").count() == 0


def test_versions_files_arguments_tasks_and_secrets_say_what_the_check_found(
    open_as: OpenAs, puzzles: str
) -> None:
    page = open_as("ada", f"{puzzles}@0.1.0/versions").page
    expect(page.get_by_role("heading", name="Check of 0.1.0")).to_be_visible()
    expect(page.get_by_text(CHECK["message"])).to_be_visible()
    page.get_by_role("link", name="0.2.0").click()
    expect(page).to_have_url(re.compile("/e/ada/puzzles@0.2.0/versions$"))

    visit_tab(page, "Files")
    page.get_by_role("link", name="data/").click()
    page.get_by_role("link", name="words.txt").click()
    expect(page).to_have_url(re.compile("/e/ada/puzzles@0.2.0/files/data/words.txt$"))
    expect(page.get_by_role("region", name="Content of data/words.txt")).to_contain_text("two")
    page.get_by_role("link", name="data", exact=True).click()
    page.get_by_role("link", name="raw.bin").click()
    expect(page.get_by_text("This file is not text")).to_be_visible()

    visit_tab(page, "Arguments")
    expect(page.get_by_role("row", name="level int 3")).to_be_visible()
    expect(page.get_by_role("row", name="path str Required")).to_be_visible()
    expect(page.get_by_text("num_examples")).to_be_visible()

    visit_tab(page, "Tasks")
    page.get_by_role("grid", name="Tasks").focus()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="one")).to_contain_text("How many legs")
    page.keyboard.press("Escape")

    visit_tab(page, "Secrets")
    expect(page.get_by_role("row").filter(has_text="SEARCH_KEY")).to_contain_text("yes")
    expect(page.get_by_role("row").filter(has_text="JUDGE_KEY")).to_contain_text("Nothing provides it")


def test_a_reader_sees_why_not_and_who_could_grant_it(open_as: OpenAs, puzzles: str) -> None:
    page = open_as("rita", f"{puzzles}/access").page
    expect(page.get_by_text("Its secrets do not reach your runs.")).to_be_visible()
    for name in ("Make public", "Delete environment", "Give role"):
        button = page.get_by_role("button", name=name)
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(button).to_have_accessible_description(
            re.compile("needs the role “owner”.*ada can change that")
        )
    page.get_by_role("button", name="Delete environment").click(force=True)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert find_violations(page) == []

    visit_tab(page, "Secrets")
    expect(page.get_by_role("row").filter(has_text="SEARCH_KEY")).to_contain_text(
        "ask ada for the role 'write'"
    )
    visit_tab(page, "Versions")
    expect(page.get_by_role("button", name="Check again")).to_have_attribute("aria-disabled", "true")
    run = page.get_by_role("link", name="Run hosted evaluation")
    expect(run).to_have_attribute("href", "/e/ada/puzzles/run")

    page.get_by_role("button", name="Fork").click()
    page.get_by_role("dialog").get_by_role("button", name="Fork").click()
    expect(page).to_have_url(re.compile("/e/rita/puzzles/readme$"))
    expect(page.get_by_text("Forked from ada/puzzles@0.2.0")).to_be_visible()


def test_an_owner_shares_changes_and_deletes_and_others_see_it_at_once(
    lab: Lab, open_as: OpenAs, tmp_path: Path
) -> None:
    place = add_environment(lab, tmp_path, "shared")
    visit = open_as("ada", f"{place}/access")
    visit.watch.expect("422|404")  # what is refused, and what is asked for while it is deleted
    owner = visit.page
    other = open_as("sam", f"{place}/readme")
    other.watch.expect("404")
    stranger = other.page
    expect(stranger.get_by_role("heading", name="Not there, or not for you")).to_be_visible()
    with stranger.expect_response("**/api/v1/feed"):
        stranger.reload()

    owner.get_by_label("User or team").fill("nobody-here")
    owner.get_by_role("button", name="Give role").click()
    expect(owner.get_by_text("There is no user and no team 'nobody-here'.")).to_be_visible()
    owner.get_by_label("User or team").fill("sam")
    owner.get_by_role("button", name="Give role").click()
    expect(owner.get_by_role("combobox", name="Role of sam")).to_have_value("read")
    expect(stranger.get_by_text("Your role: read")).to_be_visible(timeout=PATIENCE_MS)

    owner.get_by_role("combobox", name="Role of sam").select_option("write")
    expect(stranger.get_by_text("Your role: write")).to_be_visible(timeout=PATIENCE_MS)
    owner.get_by_role("button", name="Make public").click()
    owner.get_by_role("dialog").get_by_role("button", name="Make public").click()
    expect(stranger.get_by_text("Public", exact=True)).to_be_visible(timeout=PATIENCE_MS)
    owner.get_by_role("combobox", name="Who may run it").select_option("writers")
    expect(owner.get_by_text("Now: only people who may change it.")).to_be_visible()
    owner.get_by_role("button", name="Remove sam").click()
    owner.get_by_role("dialog").get_by_role("button", name="Remove").click()
    run = stranger.get_by_role("button", name="Run hosted evaluation")
    expect(run).to_have_accessible_description(
        re.compile("ada can give you the role “write”"), timeout=PATIENCE_MS
    )

    owner.get_by_role("button", name="Delete environment").click()
    delete = owner.get_by_role("dialog").get_by_role("button", name="Delete environment")
    expect(delete).to_be_disabled()
    owner.get_by_label("Type ada/shared to confirm").fill("ada/shared")
    owner.keyboard.press("Enter")
    expect(owner).to_have_url(re.compile(r"/environments\?mine=true$"))
    expect(stranger.get_by_role("heading", name="Not there, or not for you")).to_be_visible(
        timeout=PATIENCE_MS
    )


def test_an_admin_checks_again_watches_it_live_and_deletes_a_version(
    lab: Lab, open_as: OpenAs, host: Api, tmp_path: Path
) -> None:
    place = add_environment(lab, tmp_path, "checked")
    report_checks(host, passed=False, message="Loading it failed: KeyError.", tasks=None)
    visit = open_as("root", f"{place}/versions")
    visit.watch.expect("404")  # the version may be asked for once more while it is deleted
    page = visit.page
    expect(page.get_by_text("Loading it failed: KeyError.")).to_be_visible()
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_text("It waits for a host")).to_be_visible()
    claimed = host.post("/hosts/checks/claims")
    expect(page.get_by_text("A host installs it")).to_be_visible(timeout=PATIENCE_MS)
    host.ok("POST", f"/hosts/checks/{claimed['version_id']}", CHECK)
    expect(page.get_by_text(CHECK["message"])).to_be_visible(timeout=PATIENCE_MS)

    page.get_by_role("button", name="Delete 0.1.0").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No versions yet")).to_be_visible()


def test_a_session_that_ends_in_mid_page_loses_nothing_that_was_typed(
    lab: Lab, open_as: OpenAs, puzzles: str
) -> None:
    visit = open_as("ada", f"{puzzles}/access")
    page = visit.page
    visit.watch.expect("401")
    page.get_by_label("User or team").fill("sam")
    page.context.clear_cookies()
    page.get_by_role("button", name="Give role").click()

    dialog = page.get_by_role("dialog", name="Your session has ended")
    expect(dialog).to_contain_text("You were logged in as ada.")
    assert find_violations(page) == []
    dialog.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    expect(dialog.get_by_text(re.compile("token", re.IGNORECASE)).first).to_be_visible()
    dialog.get_by_label("Token").fill(lab.people["ada"].token)
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)

    expect(page.get_by_label("User or team")).to_have_value("sam")
    page.get_by_role("button", name="Give role").click()
    expect(page.get_by_role("combobox", name="Role of sam")).to_have_value("read")
    lab.people["ada"].ok("DELETE", "/environments/ada/puzzles/collaborators/sam")
    expect(page.get_by_role("combobox", name="Role of sam")).to_have_count(0, timeout=PATIENCE_MS)


def test_nobody_reads_what_is_public_and_is_led_to_the_login_and_back(
    lab: Lab, open_as: OpenAs, tmp_path: Path
) -> None:
    place = add_environment(lab, tmp_path, "open-to-all")
    lab.people["ada"].ok("PATCH", "/environments/ada/open-to-all", {"visibility": "public"})
    visit = open_as(None, f"{place}/readme")
    visit.watch.expect("401")
    page = visit.page
    expect(page.get_by_role("heading", name="ada/open-to-all")).to_be_visible()
    expect(page.get_by_role("button", name="Run hosted evaluation")).to_have_accessible_description(
        "Log in first."
    )
    visit_tab(page, "Secrets")
    page.get_by_role("main").get_by_role("link", name="Log in").click()
    page.get_by_label("Token").fill(lab.people["sam"].token)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/e/ada/open-to-all/secrets$"))
    expect(page.get_by_text("It has no secrets and no variables")).to_be_visible()


def test_the_pages_can_be_read_on_a_phone_and_say_how_old_they_are_when_the_server_is_away(
    open_as: OpenAs, puzzles: str
) -> None:
    visit = open_as("ada", "/environments", viewport=PHONE)
    page = visit.page
    expect(catalogue(page).get_by_role("row").filter(has_text="ada/puzzles")).to_be_visible()
    take_screenshot(page, "environments-phone")
    page.goto(f"{puzzles}/readme")
    seen = {
        "README": page.get_by_role("heading", name="About"),
        "Versions": page.get_by_role("heading", name="Check of 0.2.0"),
        "Files": page.get_by_role("link", name="README.md"),
        "Arguments": page.get_by_role("heading", name="Rewards"),
        "Tasks": page.get_by_role("grid", name="Tasks"),
        "Secrets": page.get_by_role("row").filter(has_text="SEARCH_KEY"),
        "Access": page.get_by_role("heading", name="Visibility"),
    }
    for tab, shown in seen.items():
        visit_tab(page, tab)
        expect(shown.first).to_be_visible()
        take_screenshot(page, f"environment-{tab.lower()}-phone")
        assert page.evaluate("document.querySelector('main').scrollWidth - innerWidth") <= 0, tab
    assert find_violations(page) == []

    visit.watch.expect("ERR_FAILED")
    page.route("**/api/v1/feed", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("heading", name="Visibility")).to_be_visible()
    banner = page.get_by_text(re.compile("interrupted; you see the state of .* ago"))
    expect(banner).to_be_visible(timeout=2 * PATIENCE_MS)
    page.unroute("**/api/v1/feed")
    expect(page.get_by_text("Live updates are back.")).to_be_attached(timeout=4 * PATIENCE_MS)
