"""A run's page: what it says in one line, why rollouts failed, how it was configured."""

from __future__ import annotations

import re
import tomllib

import pytest
from playwright.sync_api import expect

from tests.web.browser import THEMES
from tests.web.run.conftest import LocalRuns, VisitRun, check_look


def test_the_overview_is_one_line_and_what_it_rests_on(visit: VisitRun) -> None:
    page = visit("/runs/{sums}")
    line = page.get_by_role("region", name="Result")
    for text in (
        "0.909",
        "mean over 11 tasks",
        "95% interval",
        "91.7%",
        "33 of 36 have a score",
        "0.833 – 0.917",
    ):
        expect(line).to_contain_text(text)
    main = page.get_by_role("main")
    for title in ("Outcomes", "Rewards", "pass@k and pass^k", "Metrics", "Cost and tokens", "Timing"):
        expect(main.get_by_role("heading", name=title, exact=True)).to_be_visible()
    expect(main.get_by_role("heading", name="Exactly what ran")).to_be_visible()

    page.get_by_role("button", name="Show as table").first.click()
    expect(page.get_by_role("cell", name="Model error")).to_be_visible()
    page.get_by_role("button", name="Show as chart").click()
    page.get_by_role("link", name=re.compile("Model error")).click()
    expect(page).to_have_url(re.compile(r"/samples\?outcome=model_error$"))
    expect(page.get_by_text("3 rollouts", exact=True)).to_be_visible()


def test_a_run_in_progress_moves(visit_folder: VisitRun, local_runs: LocalRuns) -> None:
    page = visit_folder("/runs/live")
    expect(page.get_by_text("Score so far")).to_be_visible()
    before = page.get_by_role("region", name="Result").inner_text()
    local_runs.live.play(3)
    expect(page.get_by_role("region", name="Result")).not_to_have_text(before)


def test_failures_are_grouped_by_cause_with_the_log_around_them(visit: VisitRun) -> None:
    page = visit("/runs/{sums}/failures")
    card = page.get_by_role("article", name="RequestRefusedError")
    for text in ("Model error", "3 rollouts", "scripted: refused", "The provider refused the request"):
        expect(card).to_contain_text(text)
    expect(page.get_by_text("3 rollouts failed, for 1 reason")).to_be_visible()
    expect(card.get_by_role("link", name="task 11, rollout 0")).to_have_attribute(
        "href", re.compile(r"/runs/[^/]+/t/[0-9a-f]{16}/0")
    )
    page.keyboard.press("n")
    expect(card).to_be_focused()
    card.get_by_role("link", name="See all 3 rollouts in Samples").click()
    expect(page).to_have_url(re.compile("outcome=model_error&error_kind=RequestRefusedError"))
    expect(page.get_by_text("3 rollouts", exact=True)).to_be_visible()


def test_the_log_around_a_failure_is_one_step_away(visit_folder: VisitRun) -> None:
    page = visit_folder("/runs/{sums}/failures")
    excerpt = page.get_by_role("region", name="The log around it")
    expect(excerpt).to_contain_text("RequestRefusedError: scripted: refused")
    page.get_by_role("link", name="Open the log here").click()
    expect(page).to_have_url(re.compile(r"/logs#L\d+$"))
    expect(page.get_by_role("region", name="Log")).to_contain_text("rollout 2: model_error")
    page.get_by_role("link", name="Failures").click()
    expect(page.get_by_text("--resume")).to_be_visible()


def test_a_run_without_failures_says_so(visit: VisitRun) -> None:
    page = visit("/runs/{shop}/failures")
    expect(page.get_by_role("heading", name="No rollout has failed")).to_be_visible()


def test_the_settings_can_be_copied_as_a_command_and_as_toml(visit_folder: VisitRun) -> None:
    page = visit_folder("/runs/{sums}/config")
    command = page.get_by_role("region", name="As a command").inner_text()
    assert command.replace("\\", "").split() == [
        *("proctor", "eval", "run", "SingleTurnEnv", "-m", "careful"),
        *("--num-examples", "-1", "--rollouts-per-example", "3", "--max-retries", "0"),
    ]
    suite = tomllib.loads(page.get_by_role("region", name="As TOML").inner_text())
    assert suite["eval"][0]["rollouts_per_example"] == 3
    assert suite["eval"][0]["model"] == "careful"


def test_a_run_that_is_not_there_says_so(visit: VisitRun) -> None:
    page = visit("/runs/nothing", expected="404")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_it_reads_well_in_both_themes_and_on_a_phone(visit_folder: VisitRun, theme: str) -> None:
    for part, landmark in (("", "Outcomes"), ("/failures", "RequestRefusedError"), ("/config", "As TOML")):
        page = visit_folder("/runs/{sums}" + part, theme=theme)
        expect(page.get_by_role("heading", name=landmark)).to_be_visible()
        check_look(page, f"run-{part.strip('/') or 'overview'}-{theme}")
