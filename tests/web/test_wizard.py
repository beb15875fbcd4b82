"""Run Hosted Evaluation: from an environment to a started run, with every problem at its field."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from proctor.client.contexts import KEY_VARIABLE, URL_VARIABLE
from tests.web.browser import PHONE, PageWatch, find_violations, opened_page, take_screenshot
from tests.web.conftest import settle, start_session
from tests.web.wizard_lab import WizardLab

SUMS = "/e/ada/sums/run"
STEPS = ("environment", "model", "configure", "review")
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e${7*7}'\";--"
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WizardLab]:
    made = WizardLab(tmp_path_factory.mktemp("wizard"))
    yield made
    made.stop()


@pytest.fixture
def frail_lab(tmp_path: Path) -> Iterator[WizardLab]:
    """A server that a test may stop."""
    made = WizardLab(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def open_as(lab: WizardLab, browser: Browser) -> Iterator[Open]:
    with ExitStack() as opened:

        def open_one(person: str, path: str, refused: str = "", **options: Any) -> Page:
            page, watch = opened.enter_context(opened_page(browser, lab.url, **options))
            if refused:
                watch.expect(refused)
            start_session(page, lab.url, lab.people[person].token)
            page.goto(path)
            settle(page)
            return page

        yield open_one


def start_button(page: Page) -> Any:
    return page.get_by_role("button", name="Start run")


def started_run(page: Page) -> str:
    """The id of the run that the list highlights."""
    expect(page).to_have_url(re.compile(r"/runs\?new=run-"))
    run_id = page.url.partition("new=")[2]
    row = page.get_by_role("row").filter(has=page.locator(f"a[href='/runs/{run_id}']"))
    expect(row).to_have_class(re.compile("highlighted"))
    return run_id


def tab_to(page: Page, label: str, presses: int = 60) -> None:
    """By the Tab key alone, until the control of that name has the focus."""
    script = (
        "() => { const e = document.activeElement;"
        " return (e?.getAttribute('aria-label') || e?.labels?.[0]?.innerText || e?.innerText || '').trim() }"
    )
    for _ in range(presses):
        page.keyboard.press("Tab")
        if page.evaluate(script).startswith(label):
            return
    raise AssertionError(f"{label!r} is not reached by Tab")


def test_a_run_is_started_by_keyboard_alone_and_its_command_asks_for_the_same(
    lab: WizardLab, open_as: Open
) -> None:
    page = open_as("ada", "/run")
    tab_to(page, "ada/sums")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Environment", exact=True)).to_be_visible()
    tab_to(page, "Next: Model")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Model", exact=True)).to_be_focused()
    expect(page.get_by_text("Last here: 0.61 ± 0.04, $0.0021 per rollout")).to_be_visible()
    tab_to(page, "Search models")
    page.keyboard.type("price")
    tab_to(page, "priced")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Configure")).to_be_focused()
    tab_to(page, "Tasks")
    page.keyboard.type("20")
    tab_to(page, "Rollouts per task")
    page.keyboard.type("4")
    tab_to(page, "Arguments as JSON")
    page.keyboard.type('{"note": "it\'s"}')
    tab_to(page, "Temperature")
    page.keyboard.type("0.5")
    page.keyboard.press("Enter")
    expect(page.get_by_text("20 tasks × 4 = 80")).to_be_visible()
    expect(page.get_by_text("From the rewards of 8 tasks that priced played before.")).to_be_visible()
    expect(start_button(page)).not_to_have_attribute("aria-disabled", "true")
    command = page.get_by_role("region", name="As a command").inner_text()
    toml = page.get_by_role("region", name="As a TOML file").inner_text()
    take_screenshot(page, "wizard-review")

    tab_to(page, "Start run")
    page.keyboard.press("Enter")

    run = lab.people["ada"].get(f"/runs/{started_run(page)}")
    assert (run["environment"], run["version"], run["model"]) == ("ada/sums", "1.0", "priced")
    settings = {
        "num_examples": 20,
        "rollouts_per_example": 4,
        "env_args": {"note": "it's"},
        "temperature": 0.5,
    }
    assert run["settings"] == settings
    for words in (shlex.split(command)[1:], ["eval", "run", write_suite(lab, toml)]):
        (asked,) = ask_of_command(lab, words)
        assert asked["environment"] == "ada/sums"
        assert (asked["model"], asked["settings"]) == ("priced", settings)


def write_suite(lab: WizardLab, toml: str) -> str:
    file = lab.folder / "suite.toml"
    file.write_text(toml)
    return str(file)


def ask_of_command(lab: WizardLab, words: list[str]) -> list[dict[str, Any]]:
    """What the command line would ask the server for."""
    environ = {**os.environ, URL_VARIABLE: lab.url, KEY_VARIABLE: lab.people["ada"].token}
    done = subprocess.run(
        [sys.executable, "-m", "proctor", *words, "--dry-run"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    requests: list[dict[str, Any]] = json.loads(done.stdout)["requests"]
    return requests


def test_a_reader_sees_which_secrets_the_run_lacks_and_brings_their_own(
    lab: WizardLab, open_as: Open
) -> None:
    page = open_as("rita", f"{SUMS}?step=review&model=parrot")
    expect(start_button(page)).to_have_attribute("aria-disabled", "true")
    expect(page.get_by_role("alert").filter(has_text="JUDGE_KEY")).to_contain_text("Ask ada.")
    page.get_by_role("button", name="Go to Configure").click()
    row = page.get_by_role("row").filter(has_text="JUDGE_KEY")
    expect(row).to_contain_text("reach only runs of users who may change it")
    expect(page.get_by_text("SHARED_KEY")).to_have_count(0)

    row.get_by_role("button", name="Add JUDGE_KEY").click()
    page.get_by_label("Value of JUDGE_KEY").fill("my-own-value")

    expect(row).to_contain_text("this run's own")
    assert "my-own-value" not in page.url
    page.get_by_role("button", name="Next: Review").click()
    start_button(page).click()
    run = lab.people["rita"].get(f"/runs/{started_run(page)}")
    assert (run["owner"], run["model"]) == ("rita", "parrot")


def test_a_stranger_learns_only_that_there_is_nothing_for_them(lab: WizardLab, open_as: Open) -> None:
    page = open_as("sam", f"{SUMS}?step=review&model=parrot", "status of 404")

    expect(page.get_by_role("alert").first).to_contain_text("no environment ada/sums that you can read")
    expect(start_button(page)).to_have_attribute("aria-disabled", "true")
    page.get_by_role("link", name="Go to").or_(page.get_by_role("button", name="Go to Environment")).click()
    expect(page.get_by_label("Version")).to_have_attribute("aria-invalid", "true")
    page.goto("/run")
    expect(page.get_by_text("No environment that you can read")).to_be_visible()


def test_whoever_may_not_run_it_sees_why_and_who_could_grant_it(lab: WizardLab, open_as: Open) -> None:
    lab.people["ada"].ok("PATCH", "/environments/ada/shop", {"run_policy": "writers"})
    page = open_as("rita", "/e/ada/shop/run?step=review&model=parrot")
    refused = page.get_by_role("alert").filter(has_text="You cannot start this run yet")
    expect(refused).to_contain_text("Only users who may change ada/shop may run it")
    expect(refused).to_contain_text("Ask ada.")
    expect(start_button(page)).to_have_attribute("aria-disabled", "true")
    before = lab.count_runs("rita")

    start_button(page).click(force=True)
    page.keyboard.press("Enter")
    lab.people["ada"].ok("PATCH", "/environments/ada/shop", {"run_policy": "readers"})

    assert lab.count_runs("rita") == before
    page.reload()
    expect(start_button(page)).not_to_have_attribute("aria-disabled", "true")


def test_every_problem_stands_at_its_field(lab: WizardLab, open_as: Open) -> None:
    bad = {
        "n": "0",
        "r": "many",
        "args": "[1]",
        "max_tokens": "-5",
        "temperature": HOSTILE,
        "sampling": "{",
        "minutes": "2000",
        "budget": "-1",
        "retries": "1.5",
        "concurrency": "x",
        "name": "in\u200bvisible",
        "team": "strangers",
        "more": '{"runtime": "docker"}',
        "model": "parot",
        "version": "9.9",
    }
    address = "&".join(f"{name}={quote(value)}" for name, value in bad.items())
    page = open_as("ada", f"{SUMS}?step=configure&{address}", "status of 404")
    labels = {
        "Tasks": "num_examples is 0",
        "Rollouts per task": "rollouts_per_example must be a whole number.",
        "Arguments as JSON": "not a JSON object",
        "Max tokens per call": "max_tokens is -5",
        "Temperature": "temperature must be a number.",
        "Further sampling parameters, as JSON": "not a JSON object",
        "Time limit, in minutes": "between 1 and 1440",
        "Budget, in dollars": "more than 0",
        "Retries": "max_retries must be a whole number.",
        "Rollouts at once": "max_concurrent must be a whole number.",
        "Name of the run": "U+200B",
        "Who pays": "no team 'strangers'",
        "Further settings, as JSON": "does not take runtime",
    }

    for label, problem in labels.items():
        field = page.get_by_label(label, exact=True)
        expect(field).to_have_attribute("aria-invalid", "true")
        note = page.locator(f"#{field.get_attribute('aria-describedby')}")
        expect(note).to_contain_text(problem)
    take_screenshot(page, "wizard-problems")
    page.get_by_role("button", name="Add a secret").click()
    page.get_by_label("Name of the secret").fill("PATH")
    expect(page.get_by_text("'PATH' would change how the run itself works")).to_be_visible()
    page.get_by_role("button", name=re.compile("^2 Model")).click()
    expect(page.get_by_role("alert").filter(has_text="no model 'parot'")).to_be_visible()
    page.get_by_role("button", name=re.compile("^1 Environment")).click()
    expect(page.get_by_text("has no version '9.9'")).to_be_visible()
    page.get_by_role("button", name=re.compile("^4 Review")).click()
    expect(start_button(page)).to_have_attribute("aria-disabled", "true")
    assert find_violations(page) == []


def test_hostile_values_stay_text_and_arrive_unchanged(lab: WizardLab, open_as: Open) -> None:
    arguments = json.dumps({"text": HOSTILE, "__proto__": {"x": 1}})
    page = open_as("ada", f"{SUMS}?step=review&model=parrot&args={quote(arguments)}")

    expect(page.get_by_role("region", name="As a command")).to_contain_text("onerror=alert(1)")
    assert page.locator("img").count() == 0
    start_button(page).click()

    run = lab.people["ada"].get(f"/runs/{started_run(page)}")
    assert run["settings"]["env_args"] == json.loads(arguments)


def test_what_is_no_problem_does_not_look_like_one(lab: WizardLab, open_as: Open) -> None:
    page = open_as("ada", "/run")
    version = page.get_by_role("listitem").first.locator("span").first
    shown = version.evaluate("(element) => getComputedStyle(element).color")
    problem = page.evaluate("""() => {
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.color = "var(--bad)";
      return getComputedStyle(probe).color;
    }""")
    assert shown != problem


def test_a_double_click_starts_one_run(lab: WizardLab, open_as: Open) -> None:
    before = lab.count_runs()
    page = open_as("ada", f"{SUMS}?step=review&model=parrot")
    expect(start_button(page)).not_to_have_attribute("aria-disabled", "true")

    start_button(page).dblclick()

    started_run(page)
    assert lab.count_runs() == before + 1


def test_a_run_is_repeated_with_its_settings_and_sent_back_to_its_list(lab: WizardLab, open_as: Open) -> None:
    first = lab.people["ada"].post(
        "/runs",
        {
            "environment": "ada/sums",
            "model": "parrot",
            "settings": {"num_examples": 7, "env_args": {"x": [1]}, "timeout": 9},
            "timeout_minutes": 33,
            "permissions": {"network": True},
            "name": "the first",
        },
    )
    page = open_as("ada", f"/run?from={first['id']}&n=8")
    expect(page).to_have_url(re.compile(r"/e/ada/sums/run\?.*of=run-"))
    expect(page.get_by_text(f"Repeats {first['id']}")).to_be_visible()

    start_button(page).click()

    again = lab.people["ada"].get(f"/runs/{started_run(page)}")
    same = ("environment", "version", "model", "settings", "timeout_minutes", "permissions", "name")
    assert {name: again[name] for name in same} == {name: first[name] for name in same}


def test_a_taskset_offers_agents(open_as: Open) -> None:
    page = open_as("ada", "/e/ada/shop/run?step=model&model=parrot")

    page.get_by_label("Agent").select_option("tool_loop")

    expect(page).to_have_url(re.compile("agent=tool_loop"))
    page.get_by_role("button", name="4 Review").click()
    expect(page.get_by_role("region", name="As a command")).to_contain_text("ada/shop tool_loop -m parrot")


def test_a_server_that_dies_in_the_middle_costs_no_input(frail_lab: WizardLab, browser: Browser) -> None:
    with opened_page(browser, frail_lab.url) as (page, watch):
        expect_outage(watch)
        start_session(page, frail_lab.url, frail_lab.people["ada"].token)
        page.goto(f"{SUMS}?step=configure&model=parrot")
        settle(page)
        page.get_by_label("Tasks", exact=True).fill("7")
        page.get_by_role("button", name="Add a secret").click()
        page.get_by_label("Name of the secret").fill("OWN_KEY")
        page.get_by_label("Value of OWN_KEY").fill("kept")
        expect(page).to_have_url(re.compile("n=7"))
        before = frail_lab.count_runs()
        frail_lab.stop()

        page.get_by_label("Rollouts per task").fill("2")
        expect(page.get_by_text("Nothing you entered is lost")).to_be_visible()
        page.get_by_role("button", name="Next: Review").click()
        expect(page).to_have_url(re.compile("n=7.*r=2|r=2.*n=7"))
        frail_lab.start()
        page.get_by_role("button", name="Try again").click()

        expect(page.get_by_text("Nothing you entered is lost")).to_have_count(0)
        expect(start_button(page)).not_to_have_attribute("aria-disabled", "true")
        start_button(page).click()
        run = frail_lab.people["ada"].get(f"/runs/{started_run(page)}")
        assert run["settings"] == {"num_examples": 7, "rollouts_per_example": 2}
        assert frail_lab.count_runs() == before + 1


def expect_outage(watch: PageWatch) -> None:
    watch.expect("ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE")


def test_an_expired_session_returns_to_the_same_choices(lab: WizardLab, browser: Browser) -> None:
    with opened_page(browser, lab.url) as (page, watch):
        watch.expect("status of 40[14]")
        start_session(page, lab.url, lab.people["ada"].token)
        page.goto(f"{SUMS}?step=configure&model=parrot&n=9")
        settle(page)
        page.get_by_label("Rollouts per task").fill("6")
        expect(page).to_have_url(re.compile("r=6"))

        gone = page.request.delete("/api/v1/session", headers={"origin": lab.url})
        assert gone.ok
        page.reload()

        expect(page).to_have_url(re.compile("/login"))
        page.get_by_label("Token").fill(lab.people["ada"].token)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_label("Tasks", exact=True)).to_have_value("9")
        expect(page.get_by_label("Rollouts per task")).to_have_value("6")


def test_another_site_can_neither_start_nor_check_a_run(lab: WizardLab, open_as: Open) -> None:
    page = open_as("ada", f"{SUMS}?step=review&model=parrot")
    before = lab.count_runs()

    for path in ("/api/v1/runs", "/api/v1/runs/check", "/api/v1/runs/estimate"):
        answer = page.request.post(
            path,
            data={"environment": "ada/sums", "model": "parrot"},
            headers={"origin": "https://evil.example"},
        )
        assert (answer.status, answer.json()["code"]) == (403, "cross_site")
    assert lab.count_runs() == before


@pytest.mark.parametrize(
    ("theme", "viewport"),
    [
        pytest.param("light", None, id="light-desktop"),
        pytest.param("dark", PHONE, id="dark-phone"),
        pytest.param("dark", None, id="dark-desktop", marks=pytest.mark.slow),
        pytest.param("light", PHONE, id="light-phone", marks=pytest.mark.slow),
    ],
)
def test_every_step_can_be_read_by_everyone(
    open_as: Open, theme: str, viewport: dict[str, int] | None
) -> None:
    page = open_as("rita", "/run", theme=theme, viewport=viewport)
    assert find_violations(page) == []
    for step in STEPS:
        page.goto(f"{SUMS}?step={step}&model=priced&n=20&temperature=hot")
        settle(page)
        expect(page.get_by_role("button", name=re.compile("1 problem|2 problems")).first).to_be_visible()
        take_screenshot(page, f"wizard-{step}-{theme}-{'phone' if viewport else 'desktop'}")
        assert find_violations(page) == []
        assert page.evaluate("document.querySelector('main').scrollWidth - innerWidth") <= 0
