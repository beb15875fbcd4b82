"""A run's log: a terminal view that is read in both directions, searched, linked, and live."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import PATIENCE_MS, THEMES
from tests.web.run.conftest import LOG_LINES, LocalRuns, VisitRun, check_look


def shown_lines(page: Page) -> str:
    return page.get_by_role("region", name="Log").inner_text()


def test_it_opens_at_its_end_and_is_read_backwards_to_its_beginning(visit_folder: VisitRun) -> None:
    page = visit_folder("/runs/{careless}/logs")
    log = page.get_by_role("region", name="Log")
    expect(log).to_contain_text(f"step {LOG_LINES} failed")
    expect(log).to_contain_text("KeyError: 'x'")

    log.focus()
    for _ in range(PATIENCE_MS // 100):
        page.keyboard.press("Control+Home")
        if "step 1 took" in shown_lines(page):
            break
        page.wait_for_timeout(100)
    expect(log).to_contain_text("step 1 took 1 ms")
    page.get_by_role("button", name="Jump to the end").click()
    expect(log).to_contain_text(f"step {LOG_LINES} failed")


def test_a_line_has_an_address_and_keys_go_from_error_to_error(visit_folder: VisitRun) -> None:
    page = visit_folder("/runs/{careless}/logs#L1500")
    line = page.get_by_role("link", name="Line 1500", exact=True)
    expect(line).to_be_in_viewport()

    page.keyboard.press("n")
    expect(page).to_have_url(re.compile("#L2002$"))  # a traceback of two lines came before
    expect(page.get_by_text("step 2000 failed")).to_be_in_viewport()
    page.keyboard.press("N")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(r"#L\d+$"))


def test_search_and_levels_narrow_it_down_and_a_number_leads_back(visit_folder: VisitRun) -> None:
    page = visit_folder("/runs/{careless}/logs")
    expect(page.get_by_role("region", name="Log")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("step 77 ")
    expect(page).to_have_url(re.compile(r"q=step\+77"))
    log = page.get_by_role("region", name="Log")
    expect(log.locator("mark")).to_have_text("step 77")
    page.get_by_role("link", name="Line 77", exact=True).click()
    expect(log).to_contain_text("step 78 took")
    expect(page).to_have_url(re.compile("logs#L77$"))

    page.get_by_text("Errors", exact=True).click()
    expect(page).to_have_url(re.compile("level=ERROR"))
    expect(log).not_to_contain_text("took")
    expect(log).to_contain_text("ERROR")


def test_colors_are_styles_and_other_controls_are_visible(
    visit_folder: VisitRun, local_runs: LocalRuns
) -> None:
    local_runs.live.log("\x1b[31mred\x1b[0m \x1b]0;a title\x07 <b>bold?</b>", "WARNING")
    page = visit_folder("/runs/live/logs")
    log = page.get_by_role("region", name="Log")
    expect(log).to_contain_text("␛]0;a title␇ <b>bold?</b>")
    red = log.get_by_text("red", exact=True)
    assert red.evaluate("(span) => getComputedStyle(span).color") != page.evaluate(
        "getComputedStyle(document.querySelector('code')).color"
    )


def test_it_grows_while_the_run_is_played(visit_folder: VisitRun, local_runs: LocalRuns) -> None:
    page = visit_folder("/runs/live/logs")
    expect(page.get_by_text("Following")).to_be_visible()
    local_runs.live.log("a line that came later")
    expect(page.get_by_text("a line that came later")).to_be_in_viewport()


def test_a_run_without_a_log_says_so(visit: VisitRun) -> None:
    page = visit("/runs/{shop}/logs")
    expect(page.get_by_role("heading", name="This run has no log")).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_it_reads_well_in_both_themes_and_on_a_phone(visit_folder: VisitRun, theme: str) -> None:
    page = visit_folder("/runs/{careless}/logs#L1001", theme=theme)
    expect(page.get_by_text("step 1000 failed")).to_be_visible()
    check_look(page, f"run-logs-{theme}")
