"""The score of a recipe over time: on a run's page, and from the evaluations of its environment."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import expect

from proctor.listeners.upload import UploadNames
from tests.web.conftest import OpenAs
from tests.web.lab import Lab, upload_folder
from tests.web.played_runs import play_sums
from tests.web.run.conftest import VisitRun


def test_the_runs_of_one_environment_and_model_stand_below_each_other(visit: VisitRun) -> None:
    page = visit("/runs/{sums}/decide")
    table = page.get_by_role("table", name="Scores over time")
    own = table.get_by_role("row", name=re.compile("this run"))
    for text in ("0.909", "0.623 – 0.984", "91.7%"):
        expect(own).to_contain_text(text)
    expect(table.get_by_role("row", name=re.compile("careless"))).to_have_count(0)
    expect(page.get_by_text("runs of this environment and model; settings may differ")).to_be_visible()


def test_a_rescore_that_was_pushed_appears_with_what_moved(open_as: OpenAs, lab: Lab, tmp_path: Path) -> None:
    source = lab.runs["careless"]
    page = open_as("ada", f"/runs/{source}/decide").page
    expect(page.get_by_text("Nobody has pushed a re-score of this run.")).to_be_visible()
    commands = page.get_by_role("region", name="Commands")
    expect(commands).to_contain_text(f"proctor eval export {source} --folder {source}")

    again = play_sums(tmp_path, "careless", mistakes=1).folder
    metadata = json.loads((again / "metadata.json").read_bytes())
    metadata["origin"] = {"kind": "rescore", "run_id": source, "folder": str(tmp_path)}
    (again / "metadata.json").write_text(json.dumps(metadata))
    names = UploadNames(environment="ada/sums", name="stricter")
    run = upload_folder(lab.people["ada"], again, names)
    page.reload()

    table = page.get_by_role("table", name="Scored again")
    expect(table.get_by_role("link", name="stricter")).to_be_visible()
    table.get_by_role("link", name="See what moved").click()
    expect(page).to_have_url(re.compile(f"/compare\\?runs={source},{run}"))
    page.goto(f"/runs/{run}/decide")
    expect(page.get_by_text("This run scored the rollouts of another run again.")).to_be_visible()
    lab.people["ada"].ok("DELETE", f"/runs/{run}")


def test_the_evaluations_of_an_environment_lead_to_it(open_as: OpenAs, lab: Lab) -> None:
    page = open_as("ada", "/e/ada/sums/evaluations").page
    page.get_by_role("link", name="History of this recipe").first.click()
    expect(page).to_have_url(re.compile(r"/runs/run-\w+/decide#history$"))
    expect(page.get_by_role("table", name="Scores over time")).to_be_visible()
