"""The evaluations of an environment: its score by version and model, and the runs behind it."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import PHONE, THEMES, find_violations, take_screenshot
from tests.web.conftest import Rivals, VisitSite, settle
from tests.web.site import Site


def address(site: Site, search: str = "") -> str:
    return f"/e/{site.environment}/evaluations{search}"


def points(page: Page, count: int) -> list[str]:
    """What each point of the chart is called, once they are all there."""
    chart = page.get_by_role("group", name="Score with its interval, by version and model")
    links = chart.get_by_role("link")
    expect(links).to_have_count(count)
    return [link.get_attribute("aria-label") or "" for link in links.all()]


@pytest.mark.parametrize("theme", THEMES)
def test_the_newest_run_of_each_version_and_model_is_drawn_with_its_interval(
    site: Site, visit: VisitSite, theme: str
) -> None:
    page = visit(address(site), theme=theme)
    expect(page.get_by_role("heading", name=site.environment)).to_be_visible()

    drawn = points(page, 6 + site.versions)

    careful = [name for name in drawn if name.startswith("careful,")]
    assert len({name.split(": ")[0] for name in careful}) == site.versions
    assert len(drawn) == len({name.split(": ")[0] for name in drawn}) == 6 + site.versions
    assert all("interval from" in name for name in drawn)
    take_screenshot(page, f"evaluations-{theme}")
    assert find_violations(page) == []


def test_every_run_is_in_the_table_and_on_request_in_the_chart(
    site: Site, rivals: Rivals, visit: VisitSite
) -> None:
    page = visit(address(site))
    runs = [json.loads(path.read_text()) for path in rivals.folder.rglob("metadata.json")]

    page.get_by_text("Every run", exact=True).click()

    expect(page).to_have_url(re.compile("show=every"))
    assert len(points(page, len(runs))) == 10
    table = page.get_by_role("grid", name="Runs")
    for run in runs:
        row = table.get_by_role("row").filter(
            has=page.locator(f"a[href='/runs/{site.id_of(run['run_id'])}']")
        )
        expect(row).to_contain_text(run["model"])
        expect(row).to_contain_text(f"{run['summary']['reward']['mean']:.3f}")


def test_the_chart_has_a_table_and_the_page_a_filter_by_model(site: Site, visit: VisitSite) -> None:
    page = visit(address(site, "?model=careful"))

    page.get_by_role("button", name="Show as table").click()

    rows = page.get_by_role("table", name="Score by version and model").get_by_role("row")
    expect(rows).to_have_count(1 + site.versions)
    expect(rows.nth(1)).to_contain_text("careful")


def test_it_is_reached_from_a_run_and_leads_to_a_comparison_by_keyboard(site: Site, visit: VisitSite) -> None:
    page = visit(f"/runs/{site.runs['careful']}")
    page.get_by_role("link", name=site.environment, exact=True).focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/evaluations$"))
    settle(page)
    expect(page.get_by_role("grid", name="Runs")).to_be_visible()

    page.get_by_role("link", name="Compare the newest of each model").focus()
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"/compare\?runs="))


def test_an_environment_without_runs_says_how_to_run_it(site: Site, visit: VisitSite) -> None:
    page = visit("/e/ada/nothing/evaluations")

    expect(page.get_by_text("No run of this environment yet")).to_be_visible()
    expect(page.get_by_text("proctor eval run ada/nothing -m MODEL")).to_be_visible()
    assert find_violations(page) == []


def test_it_can_be_read_on_a_phone(site: Site, visit: VisitSite) -> None:
    page = visit(address(site), viewport=PHONE)

    take_screenshot(page, "evaluations-phone")
    assert page.evaluate("document.querySelector('main').scrollWidth - innerWidth") <= 0
    assert find_violations(page) == []
