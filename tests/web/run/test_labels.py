"""People label rollouts in the browser: blind, by keys, resumable, several people; and see how far the judge
agrees."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import delete

from proctor.server.db.tables import run_labels
from tests.web.browser import DESKTOP, THEMES
from tests.web.conftest import OpenAs
from tests.web.lab import Lab
from tests.web.run.conftest import VisitRun, check_look


@pytest.fixture
def unlabelled(lab: Lab) -> Iterator[str]:
    """A run of ada's without labels, before and after; ask for it before pages, which then close first."""
    run = lab.runs["careless"]

    def forget() -> None:
        lab.server.platform.database.write_now(
            lambda connection: connection.execute(delete(run_labels).where(run_labels.c.run_id == run))
        )

    forget()
    yield run
    forget()


def start(page: Page, scores: str = "") -> None:
    if scores:
        page.get_by_label("Scores").fill(scores)
    page.get_by_role("button", name=re.compile("labelling")).click()
    expect(page.get_by_role("article", name="Label blind")).to_be_visible()


def wait_for_place(page: Page, place: int) -> None:
    expect(page.get_by_text(re.compile(rf"^{place} / \d+$"))).to_be_visible()


def list_labels(lab: Lab, run: str) -> list[tuple[float | None, str, str]]:
    items = lab.people["ada"].get(f"/runs/{run}/labels")["items"]
    return [
        (each["score"], each["note"], each["person"]) for each in sorted(items, key=lambda each: each["at"])
    ]


def test_labels_are_given_by_keys_blind_and_continue_where_they_stopped(
    lab: Lab, unlabelled: str, open_as: OpenAs
) -> None:
    page = open_as("ada", f"/runs/{unlabelled}/labels").page
    start(page)
    shown = page.get_by_role("article", name="Label blind")
    expect(shown).to_contain_text("Answer in the dataset")
    assert "careless" not in page.locator("body").inner_text(), "nothing names the model"
    assert "careless" not in page.title()
    page.keyboard.press("1")
    wait_for_place(page, 2)
    page.keyboard.press("0")
    wait_for_place(page, 3)
    page.keyboard.press("s")
    wait_for_place(page, 4)
    page.keyboard.press("b")
    page.get_by_label("Note").fill("on second thoughts")
    page.get_by_role("button", name="Score 1").click()
    expect(page.get_by_label("Note")).to_have_value("")  # it was saved
    wait_for_place(page, 4)
    first = shown.inner_text()
    assert list_labels(lab, unlabelled) == [
        (1.0, "", "ada"),
        (0.0, "", "ada"),
        (1.0, "on second thoughts", "ada"),
    ]

    page.reload()
    wait_for_place(page, 4)
    assert shown.inner_text() == first
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text(re.compile(r"^3 of \d+ rollouts labelled by you$"))).to_be_visible()
    start(page)
    wait_for_place(page, 4)


def test_a_second_person_has_the_same_order_and_sees_nobodys_labels(
    lab: Lab, unlabelled: str, open_as: OpenAs
) -> None:
    texts = []
    for person in ("ada", "root"):
        page = open_as(person, f"/runs/{unlabelled}/labels").page
        start(page, "0,0.5,1")
        texts.append(page.get_by_role("article", name="Label blind").inner_text())
        page.keyboard.press("2")
        wait_for_place(page, 2)
        page.get_by_role("button", name="Stop").click()

    assert texts[0] == texts[1]
    assert {(score, person) for score, _, person in list_labels(lab, unlabelled)} == {
        (0.5, "ada"),
        (0.5, "root"),
    }
    people = page.get_by_role("table", name="Who has labelled")
    expect(people.get_by_role("row")).to_have_count(3)


def test_agreement_moves_in_another_tab_as_labels_come(lab: Lab, unlabelled: str, open_as: OpenAs) -> None:
    watching = open_as("root", f"/runs/{unlabelled}/labels").page
    expect(watching.get_by_text("Nobody has labelled this run yet.")).to_be_visible()
    page = open_as("ada", f"/runs/{unlabelled}/labels").page
    start(page)
    for place in range(2, 8):
        page.keyboard.press("1" if place % 2 else "0")
        wait_for_place(page, place)

    table = watching.get_by_role("table", name="Agreement of the judge with people")
    expect(table.get_by_role("row", name=re.compile("^ada 6 "))).to_be_visible()
    report = lab.people["root"].get(f"/runs/{unlabelled}/agreement")
    kappa = report["people"][0]["kappa"]["value"]
    expect(table).to_contain_text("–" if kappa is None else f"{kappa:.3f}".replace("-", "−")[:5].lstrip("−"))
    expect(watching.get_by_text("Corrected score")).to_be_visible()


def test_who_may_not_label_sees_why_and_whom_to_ask(open_as: OpenAs, lab: Lab) -> None:
    page = open_as("rita", f"/runs/{lab.runs['running']}/labels").page
    button = page.get_by_role("button", name="Start labelling")
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(button).to_have_accessible_description("Only those who may change a run label it; ask ada.")


def test_scores_that_make_no_sense_are_refused_and_folders_are_labelled_in_a_terminal(
    unlabelled: str, open_as: OpenAs, visit_folder: VisitRun
) -> None:
    page = open_as("ada", f"/runs/{unlabelled}/labels").page
    page.get_by_label("Scores").fill("0,zero")
    expect(page.get_by_text("At least two different numbers")).to_be_visible()
    local = visit_folder("/runs/{sums}/labels")
    expect(local.get_by_text(re.compile("proctor eval label"))).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_it_reads_well_in_both_themes_and_on_a_phone(
    lab: Lab, unlabelled: str, open_as: OpenAs, theme: str
) -> None:
    page = open_as("ada", f"/runs/{unlabelled}/labels", theme=theme).page
    start(page)
    page.keyboard.press("1")
    wait_for_place(page, 2)
    check_look(page, f"run-label-{theme}")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("table", name="Who has labelled")).to_be_visible()
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    check_look(page, f"run-labels-{theme}")
