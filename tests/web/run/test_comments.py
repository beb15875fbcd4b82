"""Comments on a run and on a step of a rollout: written, linked to, edited, deleted; by several people."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from proctor.reading.entries import task_key
from tests.web.browser import THEMES
from tests.web.conftest import OpenAs
from tests.web.lab import Lab
from tests.web.run.acting import OwnRuns, expire_sessions
from tests.web.run.conftest import check_look

HOSTILE = (
    "<script>window.hacked = 1</script>\n\n<img src=x onerror='window.hacked = 1'> "
    "\n\n[click](javascript:window.hacked=1) ![far](https://example.com/x.png) **bold** `code` $5 and $6"
)


def comment(page: Page, text: str) -> None:
    page.get_by_label("Your comment").fill(text)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("Your comment")).to_have_value("")


def test_two_people_talk_about_a_run_and_each_sees_the_other(own_runs: OwnRuns, open_as: OpenAs) -> None:
    run = own_runs.add("talked about", cause="crashed", visibility="readers")
    ada, rita = (open_as(person, f"/runs/{run}/comments").page for person in ("ada", "rita"))
    comment(rita, "Why did it *crash*?")
    asked = ada.get_by_role("article", name="Comment by rita")
    expect(asked.locator("em")).to_have_text("crash")
    expect(asked.get_by_role("button", name="Edit")).to_have_count(0)
    comment(ada, "No idea.")
    answer = rita.get_by_role("article", name="Comment by ada")
    expect(answer).to_contain_text("No idea.")
    expect(answer.get_by_role("button")).to_have_count(0)
    expect(rita.get_by_role("link", name=re.compile("Comments 2"))).to_be_visible()

    mine = ada.get_by_role("article", name="Comment by ada")
    mine.get_by_role("button", name="Edit").click()
    mine.get_by_label("Your comment").fill("The host was gone.")
    mine.get_by_role("button", name="Save").click()
    expect(answer).to_contain_text("The host was gone.")
    expect(answer).to_contain_text("edited")
    link = asked.get_by_role("link", name="Link to this comment").get_attribute("href") or ""
    asked.get_by_role("button", name="Delete").click()
    ada.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(rita.get_by_role("article", name="Comment by rita")).to_contain_text("Deleted by ada")

    rita.goto(link)
    named = rita.locator("[aria-current=true][id^=comment-]")
    expect(named).to_contain_text("Deleted by ada")
    rita.goto(f"/runs/{run}/comments#comment-0000000000")
    expect(rita.get_by_text("was deleted, or is not of this run")).to_be_visible()


def test_a_comment_on_a_step_is_found_again_from_the_run(lab: Lab, open_as: OpenAs) -> None:
    run = lab.runs["sums"]
    place = f"/runs/{run}/t/{task_key(1)}/0"
    page = open_as("ada", place).page
    page.get_by_role("article").nth(1).get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_label("Your comment")).to_be_focused()
    expect(page.get_by_label("About")).to_have_value("step")
    comment(page, "Here it reads the sum wrong.")
    expect(page.get_by_role("button", name="1 comment", exact=True)).to_be_visible()
    page.goto(f"/runs/{run}/comments")
    said = page.get_by_role("article", name="Comment by ada").filter(has_text="reads the sum wrong")
    said.get_by_role("link", name="rollout 0, step #1").click()
    expect(page).to_have_url(re.compile(re.escape(f"{place}#m1") + "$"))
    expect(page.get_by_role("complementary").get_by_text("Here it reads the sum wrong.")).to_be_visible()


def test_hostile_text_is_text(own_runs: OwnRuns, open_as: OpenAs) -> None:
    run = own_runs.add("attacked", cause="crashed")
    page = open_as("ada", f"/runs/{run}/comments").page
    comment(page, HOSTILE)
    said = page.get_by_role("article", name="Comment by ada")
    expect(said).to_contain_text("<script>window.hacked = 1</script>")
    expect(said.locator("strong")).to_have_text("bold")
    expect(said.locator("img, script")).to_have_count(0)
    expect(said.locator("a[href^=javascript]")).to_have_count(0)
    expect(said).to_contain_text("$5 and $6")
    assert page.evaluate("window.hacked") is None


def test_a_draft_survives_a_session_that_has_ended_and_strangers_read_nothing(
    own_runs: OwnRuns, open_as: OpenAs, lab: Lab
) -> None:
    run = own_runs.add("private talk", cause="crashed")
    for person in ("sam", None):
        stranger = open_as(person, f"/runs/{run}/comments")
        stranger.watch.expect("40[14]")
        expect(stranger.page.get_by_role("heading", name=re.compile("Not found|Log in"))).to_be_visible()
    ada = open_as("ada", f"/runs/{run}/comments")
    ada.watch.expect("401")
    ada.page.get_by_label("Your comment").fill("long thought")
    expire_sessions(lab)
    ada.page.keyboard.press("Control+Enter")
    where = ada.page.get_by_role("alert").or_(ada.page.get_by_role("heading", name="Log in to Proctor"))
    expect(where.first).to_be_visible()
    start = ada.page.request.post(
        "/api/v1/session", data={"token": lab.people["ada"].token}, headers={"origin": lab.url}
    )
    assert start.ok
    ada.page.goto(f"/runs/{run}/comments")
    expect(ada.page.get_by_label("Your comment")).to_have_value("long thought")
    ada.page.get_by_role("button", name="Comment", exact=True).dblclick()
    expect(ada.page.get_by_role("article", name="Comment by ada")).to_have_count(1)
    assert len(lab.people["ada"].get(f"/runs/{run}/comments")["items"]) == 1


@pytest.mark.parametrize("theme", THEMES)
def test_they_read_well_in_both_themes_and_on_a_phone(
    lab: Lab, own_runs: OwnRuns, open_as: OpenAs, theme: str
) -> None:
    run = own_runs.add("looked at", cause="crashed", visibility="readers")
    for person, text in (("rita", "Why is it `0.61` and not more?"), ("ada", "- the host\n- was gone")):
        lab.people[person].post(f"/runs/{run}/comments", {"text": text})
    page = open_as("ada", f"/runs/{run}/comments", theme=theme).page
    expect(page.get_by_role("article", name="Comment by ada")).to_be_visible()
    check_look(page, f"comments-run-{theme}")
    page = open_as("ada", f"/runs/{lab.runs['shop']}", theme=theme).page
    page.get_by_role("link", name="Samples").click()
    page.get_by_role("row").nth(1).get_by_role("link").first.click()
    expect(page.get_by_label("Your comment")).to_be_attached()
    check_look(page, f"comments-rollout-{theme}")
