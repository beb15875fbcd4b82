"""The compare page: the verdict and what it rests on, the same numbers as the command line's, by keyboard."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner
from playwright.sync_api import Locator, Page, expect

from proctor.cli.commands.compare import compare_command
from tests.web.browser import PHONE, THEMES, find_violations, take_screenshot
from tests.web.conftest import Rivals, VisitSite, settle
from tests.web.site import Site


def address(site: Site, *names: str, **search: str) -> str:
    runs = ",".join(site.runs[name] for name in names)
    return f"/compare?runs={runs}" + "".join(f"&{name}={value}" for name, value in search.items())


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=re.compile(f"^{name} against"))


def tasks(page: Page) -> Locator:
    return page.get_by_role("grid", name="Tasks")


def compare_by_command(rivals: Rivals, *names: str, margin: str = "0.1") -> list[dict[str, Any]]:
    """What `proctor eval compare --json` says of the same runs."""
    folders = {path.parent.name: str(path.parent) for path in rivals.folder.rglob("metadata.json")}
    words = [*(folders[rivals.runs[name]] for name in names), "--margin", margin, "--json"]
    answer = CliRunner().invoke(compare_command, words)
    comparisons: list[dict[str, Any]] = json.loads(answer.stdout)["comparisons"]
    return comparisons


def signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


# What it shows


@pytest.mark.parametrize("theme", THEMES)
def test_a_worse_run_is_called_worse_with_everything_the_verdict_rests_on(
    site: Site, visit: VisitSite, theme: str
) -> None:
    page = visit(address(site, "careful", "careless"), theme=theme)

    verdict = card(page, "careless")
    expect(verdict.get_by_text("Worse", exact=True)).to_be_visible()
    for name in ("Difference", "Wins, ties, losses", "Detectable", "p", "Correlation", "Paired tasks"):
        expect(verdict.get_by_text(name, exact=True)).to_be_visible()
    expect(page.get_by_text("sampling_args.temperature")).to_be_visible()
    expect(page.get_by_text("Every task was scored by both.")).to_be_visible()
    expect(tasks(page).get_by_role("row").nth(1)).to_contain_text("Lost")
    take_screenshot(page, f"compare-{theme}")
    assert find_violations(page) == []


def test_the_numbers_are_those_of_the_command_line(site: Site, rivals: Rivals, visit: VisitSite) -> None:
    names = ("careful", "careful again", "careless")
    page = visit(address(site, *names, margin="0.1"))
    told = compare_by_command(rivals, *names)

    for name, comparison in zip(("careful-again", "careless"), told, strict=True):
        reward = comparison["reward"]
        verdict = card(page, name)
        low, high = reward["interval"]["low"], reward["interval"]["high"]
        expect(verdict).to_contain_text(re.compile(re.escape(comparison["text"]), re.IGNORECASE))
        expect(verdict).to_contain_text(f"{signed(reward['difference'])}{signed(low)} to {signed(high)}")
        expect(verdict).to_contain_text(f"{reward['wins']} / {reward['ties']} / {reward['losses']}")
        expect(verdict).to_contain_text(f"Detectable{reward['smallest_detectable']:.3f}")
        p = reward["p_adjusted"]
        expect(verdict).to_contain_text("p< 0.001" if p < 0.001 else f"p{p:.3f}")
        expect(verdict).to_contain_text(f"Correlation{reward['correlation']:.3f}".replace("-", "−"))
        expect(page.get_by_text(comparison["equivalence"]["text"])).to_be_visible()
        rows = page.get_by_role("table", name="All measures").get_by_role("row").filter(has_text=name)
        for measure in (reward, *comparison["metrics"]):
            row = rows.filter(has=page.get_by_role("rowheader", name=measure["name"]))
            expect(row).to_contain_text(f"{measure['baseline']:.3f}{measure['candidate']:.3f}")
            expect(row).to_contain_text(signed(measure["difference"]))


def test_the_answer_of_the_api_is_the_json_of_the_command_line(
    site: Site, rivals: Rivals, visit: VisitSite
) -> None:
    runs = "&".join(f"run={site.runs[name]}" for name in ("careful", "careless"))
    page = visit("/compare")

    answer = page.request.get(f"/api/v1/compare?{runs}&margin=0.1").json()["comparisons"][0]

    (told,) = compare_by_command(rivals, "careful", "careless")
    left_out = ("tasks", "baseline", "candidate")
    assert {name: answer[name] for name in answer if name not in left_out} == {
        name: told[name] for name in answer if name not in left_out
    }


def test_there_is_no_verdict_below_the_minimum_coverage(site: Site, visit: VisitSite) -> None:
    page = visit(address(site, "careful", "partial"))

    verdict = card(page, "partial")
    expect(verdict.get_by_text("Too little data", exact=True)).to_be_visible()
    expect(verdict).to_contain_text("scored 75.0% of its rollouts, and a verdict takes 100.0%")
    expect(verdict).to_contain_text("Difference, no verdict")
    expect(page.get_by_text("In both, not scored by one")).to_be_visible()
    page.get_by_placeholder("Search task ids").fill("23")
    expect(tasks(page)).to_contain_text("not scored")


def test_unmatched_tasks_and_differing_settings_are_named(site: Site, visit: VisitSite) -> None:
    page = visit(address(site, "careful", "other"))

    expect(page.get_by_text("Only in the base")).to_be_visible()
    expect(page.get_by_text("0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11", exact=True)).to_be_visible()
    expect(page.get_by_text("env_args.first")).to_be_visible()


def test_the_base_can_be_switched_and_stays_in_the_address(site: Site, visit: VisitSite) -> None:
    page = visit(address(site, "careful", "careless"))

    page.get_by_role("radio", name="Compare the others with careless").check()

    expect(card(page, "careful").get_by_text("Better", exact=True)).to_be_visible()
    assert f"base={site.runs['careless']}" in page.url
    page.reload()
    expect(card(page, "careful").get_by_text("Better", exact=True)).to_be_visible()


def test_tasks_can_be_listed_and_drawn_by_another_measure(site: Site, visit: VisitSite) -> None:
    page = visit(address(site, "careful", "careless"))

    page.get_by_role("button", name="length").click()

    expect(page.get_by_role("img", name=re.compile("mean length"))).to_be_visible()
    expect(tasks(page).get_by_role("row").nth(1)).to_contain_text("+")
    assert "metric=length" in page.url


def test_every_chart_has_a_table(site: Site, visit: VisitSite) -> None:
    page = visit(address(site, "careful", "careless"))

    buttons = page.get_by_role("button", name="Show as table")
    expect(buttons).to_have_count(2)
    for _ in range(2):
        buttons.first.click()

    points = page.get_by_role("table", name="Task by task")
    expect(points.get_by_role("columnheader").first).to_have_text("Run")
    expect(page.get_by_role("table", name="Differences from the base")).to_contain_text("careless")


def test_a_run_that_is_not_there_and_nonsense_in_the_address_have_pages_of_their_own(
    site: Site, visit: VisitSite
) -> None:
    page = visit("/compare?runs=,,&base=%00&margin=-1&only=everything")
    expect(page.get_by_role("heading", name="Choose the runs to compare")).to_be_visible()
    assert find_violations(page) == []


def test_it_can_be_read_on_a_phone(site: Site, visit: VisitSite) -> None:
    page = visit(address(site, "careful", "careful again", "careless"), viewport=PHONE)

    width = page.evaluate("document.querySelector('main').scrollWidth - innerWidth")
    take_screenshot(page, "compare-phone")
    assert width <= 0
    assert find_violations(page) == []


# What it is used for


def test_a_flipped_task_is_one_key_from_both_traces(site: Site, visit: VisitSite) -> None:
    page = visit(address(site, "careful", "careless", only="flips"))
    expect(tasks(page).get_by_role("row").nth(1)).to_contain_text("Lost")

    page.keyboard.press("j")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile("/diff"))
    query = parse_qs(urlsplit(page.url).query)
    assert query["a"][0].startswith(site.runs["careful"] + "/")
    assert query["b"][0].startswith(site.runs["careless"] + "/")
    answer = page.request.get("/api/v1/diff", params={"a": query["a"][0], "b": query["b"][0]})
    assert answer.ok, answer.text()
    rewards = [answer.json()[side]["entry"]["reward"] for side in ("a", "b")]
    assert rewards == [1.0, 0.0]


def test_runs_are_chosen_compared_and_narrowed_down_by_keyboard_alone(site: Site, visit: VisitSite) -> None:
    page = visit("/runs?sort=model&ascending=true")
    expect(page.get_by_role("grid", name="Runs").get_by_role("row").nth(2)).to_be_visible()
    for key in ("j", "x", "j", "x", "c"):
        page.keyboard.press(key)

    expect(page).to_have_url(re.compile(r"/compare\?runs=[\w-]+,[\w-]+$"))
    settle(page)
    heading = page.get_by_role("heading", name=re.compile("against")).first
    before = heading.inner_text()
    page.keyboard.press("b")
    expect(heading).not_to_have_text(before)
    page.keyboard.press("f")
    expect(page).to_have_url(re.compile("only=flips"))
    page.keyboard.press("f")
    page.keyboard.press("/")
    page.keyboard.type("7")
    expect(page).to_have_url(re.compile("q=7"))
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Use the next run as the base")


def test_a_margin_is_asked_for_and_answered(site: Site, visit: VisitSite) -> None:
    page = visit(address(site, "careful", "careful again"))
    field = page.get_by_role("textbox", name="Equivalence margin")

    field.fill("much")
    expect(page.get_by_text("A number above 0")).to_be_visible()
    field.fill("0.5")
    field.press("Enter")

    expect(page.get_by_text("Equivalent", exact=True)).to_be_visible()
    assert "margin=0.5" in page.url
