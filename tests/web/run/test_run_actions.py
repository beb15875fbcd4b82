"""What one does to a run on the page: as its owner, as somebody who only reads it, two people at once."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from playwright.sync_api import Page, Request, expect

from proctor.api.runs import CauseCode
from tests.web.browser import THEMES
from tests.web.conftest import OpenAs
from tests.web.lab import Lab
from tests.web.run.acting import OwnRuns, expire_sessions
from tests.web.run.conftest import check_look

HEADER = "main header"


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def confirm(page: Page, name: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def list_changes(page: Page) -> list[str]:
    """Requests of the page that change something, as they are sent."""
    sent: list[str] = []

    def note(request: Request) -> None:
        if request.method not in ("GET", "HEAD"):
            sent.append(f"{request.method} {request.url.rpartition('/')[2]}")

    page.on("request", note)
    return sent


def test_by_keyboard_alone_a_run_is_stopped_and_a_reader_sees_it_and_may_not(
    own_runs: OwnRuns, open_as: OpenAs
) -> None:
    run = own_runs.add("to stop", visibility="readers")
    ada, rita = (open_as(person, f"/runs/{run}").page for person in ("ada", "rita"))
    sent = list_changes(ada)
    refused = rita.get_by_role("button", name="Stop", exact=True)
    expect(refused).to_have_attribute("aria-disabled", "true")
    expect(refused).to_have_accessible_description(re.compile("Ask ada, who started it"))
    refused.click(force=True)
    expect(rita.get_by_role("dialog")).to_have_count(0)

    stop = ada.get_by_role("button", name="Stop", exact=True)
    stop.focus()
    ada.keyboard.press("Enter")
    expect(ada.get_by_role("dialog", name="Stop this run?")).to_contain_text("1 finished rollout is kept")
    ada.keyboard.press("Escape")
    expect(stop).to_be_focused()
    assert sent == [], "it asks first"
    ada.keyboard.press("Enter")
    confirming = ada.get_by_role("dialog").get_by_role("button", name="Stop", exact=True)
    for _ in range(6):
        if confirming.evaluate("button => button === document.activeElement"):
            break
        ada.keyboard.press("Tab")
    ada.keyboard.press("Enter")

    for page in (ada, rita):
        expect(page.locator(HEADER).get_by_text("Stopping", exact=True)).to_be_visible()
    expect(ada.get_by_role("button", name="Stop", exact=True)).to_have_accessible_description(
        "It is stopping already."
    )
    assert sent == ["POST stop"]
    own_runs.end(run)
    for page in (ada, rita):
        expect(page.locator(HEADER).get_by_text("Stopped", exact=True)).to_be_visible()
    expect(ada.get_by_role("button", name="Resume").first).to_be_enabled()


def test_a_run_that_somebody_deletes_is_gone_everywhere(own_runs: OwnRuns, open_as: OpenAs) -> None:
    run = own_runs.add("to delete", cause="crashed", visibility="readers")
    ada, rita = (open_as(person, f"/runs/{run}") for person in ("ada", "rita"))
    root = open_as("root", "/runs")
    for visit in (ada, rita):
        visit.watch.expect("404")
    expect(root.page.get_by_role("link", name="to delete")).to_be_visible()
    press(ada.page, "Delete")
    confirm(ada.page, "Delete")

    expect(ada.page).to_have_url(re.compile("/runs$"))
    expect(rita.page.get_by_role("heading", name="The run is gone")).to_be_visible()
    expect(root.page.get_by_role("link", name="to delete")).to_have_count(0)


def test_of_two_renames_at_once_nobodys_is_lost_unseen(own_runs: OwnRuns, open_as: OpenAs) -> None:
    run = own_runs.add("first name")
    ada, root = (open_as(person, f"/runs/{run}") for person in ("ada", "root"))
    root.watch.expect("409")
    for page in (ada.page, root.page):
        press(page, "Rename")
        expect(page.get_by_label("Name of the run")).to_be_focused()
    ada.page.keyboard.type("ada's")
    ada.page.get_by_label("Name of the run").fill("by ada")
    ada.page.keyboard.press("Enter")
    expect(ada.page.get_by_role("heading", level=1)).to_contain_text("by ada")
    expect(root.page.get_by_text("Now it is “by ada”.")).to_be_visible()
    root.page.get_by_label("Name of the run").fill("by root")
    root.page.keyboard.press("Enter")
    expect(root.page.get_by_text("ada changed the name to 'by ada' meanwhile")).to_be_visible()
    root.page.keyboard.press("Enter")

    for page in (ada.page, root.page):
        expect(page.get_by_role("heading", level=1)).to_contain_text("by root")


def test_of_two_resumes_one_happens_and_a_double_click_is_one(
    own_runs: OwnRuns, open_as: OpenAs, lab: Lab
) -> None:
    run = own_runs.add("to resume", cause="time_limit")
    ada, root = (open_as(person, f"/runs/{run}") for person in ("ada", "root"))
    sent = list_changes(ada.page)
    for page in (ada.page, root.page):
        press(page, "Raise the time limit and resume")
    expect(ada.page.get_by_label("Time limit in minutes")).to_have_value("120")
    ada.page.get_by_label("Time limit in minutes").fill("5000")
    confirm(ada.page, "Resume")
    expect(ada.page.get_by_text("A whole number from 1 to 1440")).to_be_visible()
    ada.page.get_by_label("Time limit in minutes").fill("300")
    ada.page.get_by_role("dialog").get_by_role("button", name="Resume", exact=True).dblclick()

    expect(ada.page.locator(HEADER).get_by_text("Pending")).to_be_visible()
    assert sent == ["POST resume"]
    assert lab.people["ada"].get(f"/runs/{run}")["timeout_minutes"] == 300
    expect(ada.page.get_by_text("The time limit was reached")).to_have_count(0)
    expect(root.page.get_by_text("The time limit was reached")).to_have_count(0)
    expect(root.page.get_by_text("Somebody has resumed it meanwhile; now it is: Pending.")).to_be_visible()
    again = root.page.get_by_role("dialog").get_by_role("button", name="Resume", exact=True)
    expect(again).to_be_disabled()
    late = lab.people["root"]("POST", f"/runs/{run}/resume", {})
    assert (late.status, late.code) == (409, "not_ended")


NEXT_STEPS: dict[CauseCode, tuple[str, str]] = {
    "environment_error": ("link", "Start again with a new version"),
    "install_failed": ("link", "Open the log"),
    "missing_permission": ("link", "Grant it and start again"),
    "missing_secret": ("link", "Link the secret"),
    "time_limit": ("button", "Raise the time limit and resume"),
    "balance": ("button", "Ask for funds"),
    "budget": ("button", "Raise the budget and resume"),
    "provider": ("button", "Try again"),
    "crashed": ("button", "Try again"),
    "limit_exceeded": ("button", "Resume"),
    "stopped_by_user": ("button", "Resume"),
    "internal": ("button", "Write to the operator"),
}


def test_every_cause_has_its_next_step_as_a_button(own_runs: OwnRuns, open_as: OpenAs, lab: Lab) -> None:
    assert NEXT_STEPS.keys() == set(get_args(CauseCode))
    page = open_as("ada").page
    for code, (role, name) in NEXT_STEPS.items():
        page.goto(f"/runs/{lab.runs[code]}")
        steps = page.get_by_role("group", name="What to do")
        control = steps.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]
        expect(control).to_be_visible()
        if name.startswith(("Start again", "Grant")):
            href = re.compile(rf"^/e/ada/sums/run\?from={lab.runs[code]}$")
            expect(control).to_have_attribute("href", href)
        elif name.startswith("Link"):
            expect(control).to_have_attribute("href", "/e/ada/sums/secrets")

    page.goto(f"/runs/{lab.runs['balance']}")
    press(page, "Ask for funds")
    asked = page.get_by_role("dialog", name="Ask for funds")
    expect(asked).to_contain_text("An admin of this server can grant ada money: root. Send them this:")
    expect(asked).to_contain_text("proctor wallet grant ada 10")
    page.keyboard.press("Escape")

    run = own_runs.add("out of budget", cause="budget", max_cost=1_500_000, visibility="readers")
    page.goto(f"/runs/{run}")
    press(page, "Raise the budget and resume")
    expect(page.get_by_label("Budget in dollars, in total")).to_have_value("3")
    confirm(page, "Resume")
    expect(page.locator(HEADER).get_by_text("Pending")).to_be_visible()
    assert lab.people["ada"].get(f"/runs/{run}")["max_cost_usd"] == 3


def test_a_run_is_shared_by_link_and_a_stranger_reads_it_until_it_is_revoked(
    own_runs: OwnRuns, open_as: OpenAs
) -> None:
    run = own_runs.add("shared", cause="crashed")
    ada = open_as("ada", f"/runs/{run}").page
    press(ada, "Share")
    dialog = ada.get_by_role("dialog", name="Who may read this run")
    dialog.get_by_label("Readers").select_option("Anyone with the link")
    dialog.get_by_role("button", name="Save").click()
    link = dialog.get_by_role("textbox", name="Link").input_value()
    strangers = [open_as(person, link) for person in ("sam", None)]
    for stranger in strangers:
        stranger.watch.expect("40[14]")
        expect(stranger.page.get_by_role("heading", name="shared")).to_be_visible()
        stop = stranger.page.get_by_role("button", name="Delete", exact=True)
        expect(stop).to_have_attribute("aria-disabled", "true")
    dialog.get_by_role("button", name="Revoke the link").click()

    for stranger in strangers:
        expect(stranger.page.get_by_role("heading", name=re.compile("gone|Not found|Log in"))).to_be_visible()
    expect(dialog.get_by_role("textbox", name="Link")).to_have_count(0)


def test_selected_runs_are_tagged_stopped_and_deleted_at_once(own_runs: OwnRuns, open_as: OpenAs) -> None:
    runs = [own_runs.add(name) for name in ("bulk one", "bulk two")]
    own_runs.add("bulk three", cause="crashed")
    page = open_as("ada", "/runs?q=bulk").page
    expect(page.get_by_text("3 runs", exact=True)).to_be_visible()
    for _ in range(3):
        page.keyboard.press("j")
        page.keyboard.press("x")
    expect(page.get_by_role("main").get_by_text("3 runs selected")).to_be_visible()
    press(page, "Tag")
    page.get_by_label("Add a tag").fill("night")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    press(page, "Stop")
    stopping = page.get_by_role("dialog", name="Stop 2 runs?")
    expect(stopping).to_contain_text("1 selected run cannot be, and stays as it is.")
    confirm(page, "Stop")
    expect(page.get_by_role("row").filter(has_text="Stopping")).to_have_count(2)
    for run in runs:
        own_runs.end(run)
    expect(page.get_by_role("row").filter(has_text="Stopped")).to_have_count(2)

    page.goto("/runs?tag=night")
    expect(page.get_by_text("3 runs", exact=True)).to_be_visible()
    for _ in range(3):
        page.keyboard.press("j")
        page.keyboard.press("x")
    press(page, "Delete")
    confirm(page, "Delete")
    expect(page.get_by_text("0 runs", exact=True)).to_be_visible()


def test_note_and_tags_are_changed_on_the_page_and_seen_by_others(own_runs: OwnRuns, open_as: OpenAs) -> None:
    run = own_runs.add("noted", cause="crashed", visibility="readers")
    ada, rita = (open_as(person, f"/runs/{run}").page for person in ("ada", "rita"))
    press(ada, "Add a note")
    ada.get_by_label("Note on the run").fill("Too **slow** <img src=x onerror=alert(1)>")
    press(ada, "Save")
    for page in (ada, rita):
        expect(page.locator("strong", has_text="slow")).to_be_visible()
        expect(page.get_by_text("<img src=x onerror=alert(1)>")).to_be_visible()
    press(ada, "Edit tags")
    ada.get_by_label("Add a tag").fill("<b>tag</b>")
    ada.keyboard.press("Enter")
    expect(rita.get_by_role("link", name="<b>tag</b>")).to_be_visible()
    ada.get_by_role("button", name="Remove the tag <b>tag</b>").click()
    expect(rita.get_by_role("link", name="<b>tag</b>")).to_have_count(0)


def test_an_action_after_the_session_has_expired_says_so(
    own_runs: OwnRuns, open_as: OpenAs, lab: Lab
) -> None:
    run = own_runs.add("late", cause="crashed")
    ada = open_as("ada", f"/runs/{run}")
    ada.watch.expect("401")
    press(ada.page, "Delete")
    expire_sessions(lab)
    confirm(ada.page, "Delete")
    where = ada.page.get_by_role("alert").or_(ada.page.get_by_role("heading", name="Log in to Proctor"))
    expect(where.first).to_be_visible()
    assert lab.people["ada"].get(f"/runs/{run}")["id"] == run


@pytest.mark.parametrize("theme", THEMES)
def test_it_reads_well_in_both_themes_and_on_a_phone(own_runs: OwnRuns, open_as: OpenAs, theme: str) -> None:
    run = own_runs.add("how it looks", cause="budget", tags=["baseline", "night"], note="Watch the *cost*.")
    page = open_as("ada", f"/runs/{run}", theme=theme).page
    expect(page.get_by_role("heading", name="Outcomes")).to_be_visible()
    check_look(page, f"actions-run-{theme}")
    page.set_viewport_size({"width": 1280, "height": 800})
    press(page, "Share")
    page.get_by_label("Readers").select_option("Anyone with the link")
    press(page, "Save")
    expect(page.get_by_role("textbox", name="Link")).to_be_visible()
    check_look(page, f"actions-share-{theme}")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("Escape")
    press(page, "Raise the budget and resume")
    check_look(page, f"actions-resume-{theme}")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/runs?q=how+it+looks")
    expect(page.get_by_role("link", name="how it looks")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("main").get_by_text("1 run selected")).to_be_visible()
    check_look(page, f"actions-list-{theme}")
