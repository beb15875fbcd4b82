"""What a run decides, in the browser as on the command line: a policy checked, more tasks planned."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import THEMES
from tests.web.conftest import OpenAs, settle
from tests.web.lab import Lab
from tests.web.run.conftest import RunSite, VisitRun, check_look

THRESHOLD = 'min_coverage = 0.9\n[[rules]]\nmeasure = "reward"\nat_least = {threshold}\n'
DROP = 'min_coverage = 0.9\n[[rules]]\nmeasure = "reward"\nmax_drop = 0.05\n'


def check_policy(page: Page, policy: str) -> None:
    page.get_by_role("textbox", name="Policy").fill(policy)
    page.get_by_role("button", name="Check").click()


@pytest.mark.parametrize(
    ("threshold", "outcome"), [("0.5", "PASS"), ("0.9", "INCONCLUSIVE"), ("0.999", "FAIL")]
)
def test_a_policy_gives_a_verdict_and_every_rule_its_line(
    visit_folder: VisitRun, threshold: str, outcome: str
) -> None:
    page = visit_folder("/runs/{careless}/decide" if outcome == "FAIL" else "/runs/{sums}/decide")
    check_policy(page, THRESHOLD.format(threshold=threshold))
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text(outcome)
    expect(verdict.get_by_role("row", name=f"reward: at least {threshold}")).to_contain_text("interval")


def test_the_address_has_the_policy_and_a_baseline_and_the_browser_remembers_it(
    visit: VisitRun, site: RunSite
) -> None:
    page = visit("/runs/{careless}/decide")
    page.get_by_label("Baseline").select_option(site.runs["sums"])
    check_policy(page, DROP)
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text("reward: drop at most 0.05 against the baseline")
    expect(verdict).to_contain_text(f"against {site.runs['sums']}")

    page.reload()
    expect(verdict).to_contain_text("drop at most 0.05")
    expect(page.get_by_role("textbox", name="Policy")).to_have_value(DROP)
    assert parse_qs(urlparse(page.url).query)["policy"] == [DROP]

    page.goto(f"/runs/{site.runs['sums']}/decide")
    settle(page)
    expect(page.get_by_role("textbox", name="Policy")).to_have_value(DROP)
    expect(verdict).to_have_count(0)


def test_a_policy_file_is_opened_and_what_is_wrong_with_it_stands_at_the_field(visit: VisitRun) -> None:
    page = visit("/runs/{sums}/decide", expected="422")
    policy = {"name": "gate.toml", "mimeType": "text/plain", "buffer": b"[[rules]]\nmeasure = 'reward'\n"}
    page.get_by_label("Open a policy file").set_input_files(policy)  # type: ignore[arg-type]
    page.get_by_role("button", name="Check").click()

    field = page.get_by_role("textbox", name="Policy")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("policy:1: a rule has exactly one of")).to_be_visible()
    assert "a rule has exactly one of" in page.evaluate(
        "document.getElementById(document.querySelector('textarea').getAttribute('aria-describedby')).innerText"
    )


def test_an_open_question_becomes_a_plan_and_the_plan_a_new_run(open_as: OpenAs, lab: Lab) -> None:
    page = open_as("ada", f"/runs/{lab.runs['sums']}/decide").page
    check_policy(page, THRESHOLD.format(threshold="0.88"))
    page.get_by_role("button", name="What would decide it?").click()

    plan = page.get_by_role("table", name="Plan")
    expect(plan.get_by_role("row", name=re.compile("fewest rollouts"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"[\d,]+ more tasks would decide\."))).to_be_visible()
    button = page.get_by_role("link", name=re.compile(r"Run [\d,]+ tasks"))
    target = urlparse(str(button.get_attribute("href")))
    query = parse_qs(target.query)
    assert target.path == "/e/ada/sums/run"
    assert query["from"] == [lab.runs["sums"]]
    assert int(query["n"][0]) > 12
    assert int(query["r"][0]) >= 1

    page.get_by_text("Budget", exact=True).click()
    page.get_by_label("What can so many dollars show?").fill("nothing")
    expect(page.get_by_text("A number above 0.")).to_be_visible()


def test_over_folders_a_plan_is_a_command(visit_folder: VisitRun) -> None:
    page = visit_folder("/runs/{sums}/decide?amount=0.02")
    command = page.get_by_role("region", name="As a command")
    expect(command).to_contain_text(re.compile(r"proctor eval run \S+ -m careful -n \d+ -r \d+"))
    expect(page.get_by_role("region", name="Commands")).to_contain_text("proctor eval rescore")


@pytest.mark.parametrize("theme", THEMES)
def test_it_reads_well_in_both_themes_and_on_a_phone(visit_folder: VisitRun, theme: str) -> None:
    policy = "min_coverage%3D0.9%0A%5B%5Brules%5D%5D%0Ameasure%3D%22reward%22%0Aat_least%3D0.9%0A"
    page = visit_folder(f"/runs/{{sums}}/decide?policy={policy}&amount=0.02", theme=theme)
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("INCONCLUSIVE")
    expect(page.get_by_role("table", name="Plan")).to_be_visible()
    check_look(page, f"run-decide-{theme}")
