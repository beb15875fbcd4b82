"""A run's Samples: every rollout, sorted and filtered by the address, walked by keys, by task, exported."""

from __future__ import annotations

import csv
import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import THEMES
from tests.web.hostile_content import MARK
from tests.web.run.conftest import LocalRuns, VisitRun, check_look


def cells(page: Page, column: int) -> list[str]:
    rows = page.get_by_role("grid").get_by_role("row").all()[1:]
    return [row.get_by_role("gridcell").nth(column).inner_text() for row in rows]


def test_the_server_sorts_and_filters_and_the_address_says_how(visit: VisitRun) -> None:
    page = visit("/runs/{sums}/samples")
    expect(page.get_by_text("36 rollouts")).to_be_visible()
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", "37")

    page.get_by_role("columnheader", name="Reward").get_by_role("button").click()
    expect(page.get_by_role("columnheader", name="Reward")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("columnheader", name="Reward").get_by_role("button").click()
    expect(page).to_have_url(re.compile(r"\?sort=reward$"))
    expect(page.get_by_role("row").nth(1)).to_contain_text("a guess")

    page.get_by_role("button", name="Outcome").first.click()
    page.get_by_label("Model error").check()
    expect(page.get_by_text("3 rollouts", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("outcome=model_error"))
    page.keyboard.press("Escape")
    assert set(cells(page, 1)) == {"Model error"}
    assert "scripted: refused" in page.get_by_role("grid").inner_text()

    page.reload()
    expect(page.get_by_text("3 rollouts", exact=True)).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(page.get_by_text("36 rollouts")).to_be_visible()

    page.get_by_role("button", name="Ranges").click()
    page.get_by_label("Reward, at most").fill("0.4")
    page.keyboard.press("Enter")
    expect(page.get_by_text("3 rollouts", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("reward_max=0.4"))


def test_a_metric_is_a_column_that_sorts(visit: VisitRun) -> None:
    page = visit("/runs/{sums}/samples")
    page.get_by_role("columnheader", name="length").get_by_role("button").click()
    expect(page).to_have_url(re.compile("sort=metric&descending=true|metric=length"))
    expect(page.get_by_role("row").nth(1).get_by_role("gridcell", name="7", exact=True)).to_be_visible()

    page.get_by_role("button", name="Columns").click()
    page.get_by_role("menuitemcheckbox", name="Stopped by").click()
    expect(page.get_by_role("columnheader", name="Stopped by")).to_be_attached()
    expect(page).to_have_url(re.compile("cols="))


def test_tasks_show_the_mean_and_spread_of_their_rollouts(visit: VisitRun) -> None:
    page = visit("/runs/{sums}/samples?view=tasks&sort=spread&descending=true")
    expect(page.get_by_text("12 tasks")).to_be_visible()
    first = page.get_by_role("row").nth(1)
    expect(first).to_contain_text("0.667")
    expect(first).to_contain_text("± 0.577")
    expect(first).to_contain_text("2 of 3")
    expect(first.get_by_role("link", name="Rollout 2: Scored, reward 0.000")).to_be_visible()

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_text("3 rollouts", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("task="))
    page.go_back()
    expect(page.get_by_text("12 tasks")).to_be_visible()


def test_by_keyboard_alone_a_rollout_is_found_opened_and_two_are_compared(visit: VisitRun) -> None:
    page = visit("/runs/{sums}/samples")
    expect(page.get_by_text("36 rollouts")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("guess")
    expect(page.get_by_text("3 rollouts", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_text("2 rollouts selected")).to_be_visible()
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile(r"/diff\?a=.+/\d+&b="))
    page.go_back()
    expect(page.get_by_text("3 rollouts", exact=True)).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/runs/[^/]+/t/[0-9a-f]{16}/2"))


def test_what_is_shown_can_be_exported(visit: VisitRun) -> None:
    page = visit("/runs/{sums}/samples?outcome=model_error")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="CSV").click()
    with download.value.path().open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["outcome"] for row in rows] == ["model_error"] * 3


def test_a_run_in_progress_gets_its_rollouts_as_they_end(
    visit_folder: VisitRun, local_runs: LocalRuns
) -> None:
    page = visit_folder("/runs/live/samples")
    before = local_runs.live.played
    expect(page.get_by_text(f"{before} rollouts", exact=True)).to_be_visible()
    local_runs.live.play(5)
    expect(page.get_by_text(f"{before + 5} rollouts", exact=True)).to_be_visible()


def test_hostile_content_is_text(visit: VisitRun) -> None:
    for address in ("/samples", "/samples?view=tasks", "/failures", ""):
        page = visit("/runs/{hostile}" + address)
        page.wait_for_timeout(200)
        assert page.evaluate(f"window['{MARK}'] === undefined && !document.querySelector('main iframe')")
    page = visit("/runs/{hostile}/samples")
    assert "<script>" in page.get_by_role("grid").inner_text()


@pytest.mark.parametrize("theme", THEMES)
def test_it_reads_well_in_both_themes_and_on_a_phone(visit_folder: VisitRun, theme: str) -> None:
    for name, address in (("samples", ""), ("tasks", "?view=tasks")):
        page = visit_folder("/runs/{sums}/samples" + address, theme=theme)
        expect(page.get_by_role("grid")).to_be_visible()
        check_look(page, f"run-{name}-{theme}")
