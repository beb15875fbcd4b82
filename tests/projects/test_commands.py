"""`proctor rollout` and `proctor doctor`."""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from proctor import GraderContext
from proctor.config.experiment import read_recipe
from proctor.datasets.dataset import validate
from proctor.workflow.authoring import RolloutSample
from tests.conftest import Ran
from tests.projects.conftest import MadeProject

Say = Callable[..., Ran]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_new_rollout_comes_with_a_recipe_and_a_dataset(say: Say, tmp_path: Path) -> None:
    said = say("rollout", "init", "sums")

    assert said.code == 0
    assert "proctor eval run configs/eval/sums.toml" in said.stdout
    assert read_recipe(tmp_path / "configs/eval/sums.toml").recipe.experiment.rollout == "sums"
    assert validate(tmp_path / "data/sums.jsonl").is_valid
    compile((tmp_path / "rollouts/sums/main.py").read_text(), "main.py", "exec")
    assert (tmp_path / ".gitignore").read_text().startswith("outputs/")


def test_the_grader_of_a_new_rollout_rejects_a_number_that_only_contains_the_right_one(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say("rollout", "init", "sums")
    monkeypatch.setitem(sys.modules, "openai", SimpleNamespace(AsyncOpenAI=None))
    check = runpy.run_path(str(tmp_path / "rollouts/sums/main.py"))["Check"]

    rewards = []
    for answer in ("7 + 49 = 56", "156", "I do not know"):
        sample = RolloutSample(messages=[{"role": "assistant", "content": answer}])
        ctx: GraderContext[None] = GraderContext(
            label="56",
            sample=sample,
            prompt=[],
            metadata={},
            config=None,
            artifacts_dir=tmp_path,
            project_path=tmp_path,
        )
        asyncio.run(check().grade(ctx))
        rewards.append(ctx.reward)

    assert rewards == [1.0, 0.0, 0.0]


def test_an_existing_rollout_is_overwritten_only_by_force(say: Say, tmp_path: Path) -> None:
    say("rollout", "init", "sums")
    (tmp_path / "rollouts/sums/main.py").write_text("mine\n")
    (tmp_path / "data/sums.jsonl").write_text("mine\n")

    refused = say("rollout", "init", "sums")
    forced = say("rollout", "init", "sums", "--force")

    assert refused.code == 2
    assert "already exists; choose another name, or overwrite it with --force" in refused.stderr
    assert forced.code == 0
    assert "class Workflow" in (tmp_path / "rollouts/sums/main.py").read_text()
    assert (tmp_path / "data/sums.jsonl").read_text() == "mine\n", "a dataset is never overwritten"


def test_a_name_that_cannot_be_a_folder_is_refused(say: Say) -> None:
    assert "cannot be the name of a rollout" in say("rollout", "init", "../x").stderr


def test_rollouts_are_listed_with_their_packages_and_recipes(project: MadeProject, say: Say) -> None:
    say("rollout", "init", "sums")

    listed = json.loads(say("rollout", "list", "--json").stdout)["rollouts"]

    assert [(each["name"], each["packages"], each["recipes"]) for each in listed] == [
        ("my-rollout", [], ["my.toml"]),
        ("sums", ["openai>=1.50"], ["sums.toml"]),
    ]
    assert "1 not installed yet" in say("rollout", "list").stdout


def test_outside_of_a_project_it_says_how_to_make_one(say: Say) -> None:
    said = say("rollout", "list")

    assert said.code == 2
    assert "no folder above it holds rollouts/. Create one with `proctor rollout init NAME`." in said.stderr


def test_the_doctor_finds_nothing_wrong_with_a_sound_project(project: MadeProject, say: Say) -> None:
    said = say("doctor")

    assert said.code == 0, said.stdout
    assert "Ready to run." in said.stdout
    assert "warning  git repository" in said.stdout


def test_the_doctor_names_everything_that_is_missing_and_how_to_mend_it(
    project: MadeProject, say: Say
) -> None:
    project.write_recipe('[secrets]\nrequired = ["MY_KEY"]\n')
    project.recipe.write_text(project.recipe.read_text().replace('"scripted"', '"openai/gpt-5-mini"'))
    (project.rollout / "main.py").unlink()
    project.dataset.write_text('{"user_prompt": "no label"}\n')
    (project.recipe.parent / "broken.toml").write_text("[experiment]\nrollout = 3\n")
    (project.rollout / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.99"\n')

    said = say("doctor", "--json")

    checks = [each for each in json.loads(said.stdout)["checks"] if each["problem"]]
    found = "\n".join(f"{each['what']}: {each['problem']}" for each in checks)
    assert said.code == 1
    for problem in (
        "rollouts/my-rollout: rollouts/my-rollout requires Python >=3.99",
        "my-rollout has no main.py",
        "my-dataset.jsonl:1: this row has no 'ground_truth'",
        "MY_KEY is not set",
        "No API key for model 'openai/gpt-5-mini'",
        "broken.toml:2: 'rollout' must be a text, not 3.",
    ):
        assert problem in found
