"""Suites: the list of sweeps, and the matrix of one, whose cells change while its runs are played."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.web.browser import PHONE, THEMES, find_violations, go_by_keys, opened_page, take_screenshot
from tests.web.conftest import Rivals, VisitSite, settle
from tests.web.site import Site, viewing


def matrix(page: Page) -> Locator:
    return page.get_by_role("table", name="Matrix")


def test_a_sweep_is_listed_by_what_it_varied_and_opened_by_keyboard(site: Site, visit: VisitSite) -> None:
    page = visit("/")
    go_by_keys(page, "s", "/suites")
    row = page.get_by_role("grid", name="Suites").get_by_role("row").nth(1)
    expect(row).to_contain_text("model (2) × temperature (2)")
    expect(row).to_contain_text("All ended")

    page.keyboard.press("j")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(f"/suites/{site.suite}$"))
    expect(matrix(page)).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_every_cell_of_the_matrix_has_a_score_with_its_interval(
    site: Site, visit: VisitSite, theme: str
) -> None:
    page = visit(f"/suites/{site.suite}", theme=theme)

    expect(matrix(page).get_by_role("columnheader").nth(1)).to_contain_text("0.0")
    expect(matrix(page).get_by_role("rowheader").nth(0)).to_contain_text("strong")
    expect(matrix(page).get_by_role("rowheader").nth(1)).to_contain_text("weak")
    for cell in matrix(page).get_by_role("cell").all():
        expect(cell).to_have_text(re.compile(r"^\d\.\d{3}\d\.\d{3} – \d\.\d{3}$"))
    take_screenshot(page, f"suite-{theme}")
    assert find_violations(page) == []


def test_the_scores_of_the_matrix_are_those_of_the_runs(site: Site, rivals: Rivals, visit: VisitSite) -> None:
    page = visit(f"/suites/{site.suite}")

    for path in (rivals.folder / "sweep").rglob("metadata.json"):
        metadata = json.loads(path.read_text())
        mean = metadata["summary"]["reward"]["mean"]
        row = matrix(page).get_by_role("row").filter(has_text=metadata["model"])
        link = row.locator(f"a[href='/runs/{site.id_of(metadata['run_id'])}']")
        expect(link).to_have_text(f"{mean:.3f}")


def test_a_row_of_the_matrix_can_be_compared(site: Site, visit: VisitSite) -> None:
    page = visit(f"/suites/{site.suite}")

    page.get_by_role("link", name="Compare strong").click()

    expect(page).to_have_url(re.compile(r"/compare\?runs=[\w-]+,[\w-]+$"))
    settle(page)
    expect(page.get_by_text("No difference shown", exact=True).first).to_be_visible()


def test_the_matrix_can_be_read_on_a_phone(site: Site, visit: VisitSite) -> None:
    page = visit(f"/suites/{site.suite}", viewport=PHONE)

    take_screenshot(page, "suite-phone")
    assert page.evaluate("document.querySelector('main').scrollWidth - innerWidth") <= 0
    assert find_violations(page) == []


def test_a_suite_that_is_not_there_says_so(site: Site, visit: VisitSite) -> None:
    # Chromium itself reports the answer 404 as a console error, so the page is asked for by its link only.
    page = visit("/suites")

    assert page.request.get("/api/v1/suites/nothing").status == 404


@pytest.fixture
def empty_page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    with viewing(tmp_path) as url, opened_page(browser, url) as (page, _):
        yield page


def test_without_a_suite_the_page_has_the_command_that_makes_one(empty_page: Page) -> None:
    empty_page.goto("/suites")
    settle(empty_page)

    expect(empty_page.get_by_text("No suites yet")).to_be_visible()
    expect(empty_page.get_by_text("proctor eval run suite.toml")).to_be_visible()
    assert find_violations(empty_page) == []


@pytest.fixture
def copied_sweep(rivals: Rivals, tmp_path: Path) -> Path:
    shutil.copytree(rivals.folder / "sweep" / "outputs", tmp_path / "outputs")
    return tmp_path / "outputs"


def test_a_cell_changes_while_the_page_is_open(copied_sweep: Path, rivals: Rivals, browser: Browser) -> None:
    changed = min(copied_sweep.rglob("metadata.json"))
    with viewing(copied_sweep) as url, opened_page(browser, url) as (page, _):
        page.goto(f"/suites/{rivals.suite}")
        settle(page)
        cell = page.get_by_role("cell").filter(has=page.locator(f"a[href$='{changed.parent.name}']"))
        expect(cell).not_to_contain_text("Stopped")

        metadata = json.loads(changed.read_text())
        changed.write_text(json.dumps({**metadata, "status": "stopped"}))

        expect(cell).to_contain_text("Stopped", timeout=30_000)
