"""The list of runs and the start page: live, filtered by the address, walked by keys."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.web.browser import THEMES, go_by_keys
from tests.web.run.conftest import LocalRuns, VisitRun, check_look


def test_runs_are_filtered_by_the_address(visit: VisitRun) -> None:
    page = visit("/runs?model=careless")
    expect(page.get_by_text("1 run", exact=True)).to_be_visible()
    expect(page.get_by_role("row").nth(1)).to_contain_text("0.727")
    page.get_by_role("button", name="Clear filters").click()
    expect(page).to_have_url(re.compile("/runs$"))
    page.keyboard.press("/")
    page.keyboard.type("shopper")
    expect(page.get_by_text("1 run", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("q=shopper"))


def test_by_keyboard_alone_runs_are_opened_and_compared(visit: VisitRun) -> None:
    page = visit("/runs?model=careful&model=careless&sort=name")
    expect(page.get_by_role("grid")).to_be_visible()
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_role("main").get_by_text("2 runs selected")).to_be_visible()
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile(r"/compare\?runs=[^,]+(,|%2C)[^,]+$"))
    page.go_back()
    expect(page.get_by_role("grid")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/runs/[^/?]+$"))
    go_by_keys(page, "h", "/")
    expect(page.get_by_role("heading", name="Last finished")).to_be_visible()


def test_columns_are_chosen_and_stay_in_the_address(visit: VisitRun) -> None:
    page = visit("/runs")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("menuitemcheckbox", name="Coverage").click()
    expect(page.get_by_role("columnheader", name="Coverage")).to_be_attached()
    expect(page).to_have_url(re.compile("cols=.*coverage"))


def test_a_run_in_progress_is_at_the_top_of_the_start_page_and_moves(
    visit_folder: VisitRun, local_runs: LocalRuns
) -> None:
    page = visit_folder("/")
    section = page.locator("section", has=page.get_by_role("heading", name="Running now"))
    expect(section.get_by_role("link", name="SingleTurnEnv")).to_be_visible()
    before = section.inner_text()
    local_runs.live.play(2)
    expect(section).not_to_have_text(before)


@pytest.mark.parametrize("theme", THEMES)
def test_they_read_well_in_both_themes_and_on_a_phone(visit: VisitRun, theme: str) -> None:
    for name, address, title in (("runs", "/runs", "Runs"), ("home", "/", "Home")):
        page = visit(address, theme=theme)
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        expect(page.get_by_text("careless").first).to_be_attached()
        check_look(page, f"{name}-{theme}")
