"""Search through all transcripts of a run: found as it is typed, opened at its step."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.web.browser import find_violations, take_screenshot
from tests.web.run.conftest import VisitRun


def test_a_text_is_found_and_leads_to_its_step(visit: VisitRun) -> None:
    page = visit("/runs/{sums}/search")
    expect(page.get_by_role("searchbox")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("what is 3")
    expect(page).to_have_url(re.compile(r"/search\?q=what\+is\+3$"))
    expect(page.get_by_text("3 places")).to_be_visible()
    expect(page.locator("mark").first).to_have_text("What is 3")
    assert find_violations(page) == []
    take_screenshot(page, "search")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/t/\w+/\d#m\d+$"))
    expect(page.get_by_role("region", name="Conversation")).to_contain_text("What is 3 + 3?")


def test_what_is_nowhere_is_said_to_be_nowhere(visit_folder: VisitRun) -> None:
    page = visit_folder("/runs/{sums}/search?q=zzzz<b>nowhere")
    expect(page.get_by_text("No transcript of this run contains “zzzz<b>nowhere”.")).to_be_visible()
