"""Datasets of a server in recipes, environments and hosted runs: which version is used, and by whom."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from proctor.env.multi_turn import SingleTurnEnv
from proctor.errors import ConfigError
from proctor.server.datasets.pins import pin_datasets, save_pins
from proctor.server.people.tokens import find_user_caller
from tests.conftest import Ran
from tests.projects.conftest import MadeProject
from tests.server.datasets.pushing import OTHER_ROWS, ROWS, push_rows, sha256_of
from tests.server.runs import making
from tests.server.serving import Api, Served
from tests.server.test_hostile_requests import Played, play
from tests.server.workplace import workplace

Proctor = Callable[..., Ran]
RUN = ("eval", "run", "project/configs/eval/my.toml", "--json")
QUESTIONS = b'{"question": "1+1", "answer": "2"}\n'


@pytest.fixture
def ada(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    api = served.user("ada")
    monkeypatch.setenv("PROCTOR_API_URL", served.url)
    monkeypatch.setenv("PROCTOR_API_KEY", api.token)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return api


# Recipes


def test_a_recipe_takes_the_file_in_data_before_the_servers_and_says_which(
    ada: Api, tmp_path: Path, proctor: Proctor
) -> None:
    project = MadeProject(tmp_path / "project")
    project.write_recipe('[evaluation]\nlimit = "all"\n')
    push_rows(ada, "ada", "my-dataset", ROWS)

    here = proctor(*RUN)
    project.dataset.unlink()
    there = proctor(*RUN)
    push_rows(ada, "ada", "my-dataset", OTHER_ROWS)
    later = proctor(*RUN)

    assert f"Dataset: {project.dataset}" in here.stderr
    assert f"Dataset: ada/my-dataset@{sha256_of(ROWS)[:12]} from {ada.url}" in there.stderr
    assert f"Dataset: ada/my-dataset@{sha256_of(OTHER_ROWS)[:12]} from {ada.url}" in later.stderr
    assert [len(ran.rows) for ran in (here, there, later)] == [30, 2, 1]
    stored = json.loads((there.folder / "metadata.json").read_text())
    assert stored["environment"]["dataset"] == {
        "name": "ada/my-dataset",
        "sha256": sha256_of(ROWS),
        "rows": 2,
    }


def test_a_recipe_with_a_version_plays_it_without_the_server_once_it_is_cached(
    served: Served, ada: Api, tmp_path: Path, proctor: Proctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = MadeProject(tmp_path / "project")
    push_rows(ada, "ada", "sums", ROWS)
    push_rows(ada, "ada", "sums", OTHER_ROWS)
    text = project.recipe.read_text().replace('"my-dataset"', f'"ada/sums@{sha256_of(ROWS)[:8]}"')
    project.recipe.write_text(text + '[evaluation]\nlimit = "all"\n')

    assert len(proctor(*RUN).rows) == 2
    monkeypatch.setenv("PROCTOR_API_URL", "http://127.0.0.1:9")
    again = proctor(*RUN, "--fresh")

    assert again.code == 0, again.stderr
    assert len(again.rows) == 2


def test_a_recipe_whose_dataset_is_nowhere_says_where_it_looked(
    ada: Api, tmp_path: Path, proctor: Proctor
) -> None:
    project = MadeProject(tmp_path / "project")
    project.dataset.unlink()

    ran = proctor(*RUN)

    assert ran.code == 2
    assert "my.toml:5: There is no dataset 'my-dataset'" in ran.stderr
    assert f"On a server: {ada.url} has none of yours." in ran.stderr


# Environments


def test_an_environment_names_a_version_and_never_just_the_latest(ada: Api, tmp_path: Path) -> None:
    push_rows(ada, "ada", "questions", QUESTIONS)

    environment = SingleTurnEnv(dataset=f"ada/questions@{sha256_of(QUESTIONS)}")

    assert [task.answer for task in environment.tasks()] == ["2"]
    with pytest.raises(ConfigError, match=f"write 'ada/questions@{sha256_of(QUESTIONS)[:12]}'"):
        SingleTurnEnv(dataset="ada/questions").tasks()
    with pytest.raises(ConfigError, match="no dataset of that name"):
        SingleTurnEnv(dataset="ada/none").tasks()


# Hosted runs


def submit(served: Served, arguments: dict[str, Any], environment_owner: str) -> Played:
    """A run of ada's that is being played, with these arguments for its environment."""
    owned = f"{environment_owner}-sums"
    run = play(served, "ada", environment_id=f"env-{owned}", version_id=f"ver-{owned}")

    def work(connection: Connection) -> None:
        caller = find_user_caller(connection, "ada")
        settings, versions = pin_datasets(connection, caller, {"env_args": arguments})
        arguments.update(settings["env_args"])
        save_pins(connection, run.id, versions)

    served.platform.database.write_now(work)
    return run


def test_a_run_of_foreign_code_reads_only_the_datasets_that_its_owner_named(served: Served) -> None:
    ada, eve = served.user("ada"), served.user("eve")
    served.platform.database.write_now(making.environment, "eve", "sums")
    for name, visibility in (("named", "private"), ("secret", "private"), ("open", "public")):
        assert push_rows(ada, "ada", name, ROWS, visibility=visibility).status == 201
    push_rows(eve, "eve", "hers", ROWS)
    arguments = {"dataset": "ada/named", "repository": "some/thing@0123456789", "count": 3}

    run = submit(served, arguments, "eve")

    assert arguments["dataset"] == f"ada/named@{sha256_of(ROWS)}"
    assert arguments["repository"] == "some/thing@0123456789"
    seen = {
        name: run.inside("GET", f"/datasets/{name}/versions/latest/content").status
        for name in ("ada/named", "ada/open", "ada/secret", "eve/hers")
    }
    assert seen == {"ada/named": 200, "ada/open": 200, "ada/secret": 404, "eve/hers": 404}
    assert run.inside("DELETE", "/datasets/ada/named").status == 403
    assert push_rows(run.inside, "ada", "more", ROWS).status == 403


def test_a_run_of_ones_own_environment_reads_all_of_ones_datasets(served: Served) -> None:
    ada = served.user("ada")
    served.platform.database.write_now(making.environment, "ada", "sums")
    push_rows(ada, "ada", "secret", ROWS)

    run = submit(served, {}, "ada")

    assert run.inside("GET", "/datasets/ada/secret/versions/latest").status == 200


def test_a_version_is_not_deleted_while_a_run_uses_it(served: Served) -> None:
    ada = served.user("ada")
    served.platform.database.write_now(making.environment, "ada", "sums")
    push_rows(ada, "ada", "named", ROWS)
    submit(served, {"dataset": "ada/named"}, "ada")
    push_rows(ada, "ada", "named", OTHER_ROWS)

    for path in ("", f"/versions/{sha256_of(ROWS)}"):
        refused = ada("DELETE", f"/datasets/ada/named{path}")
        assert (refused.status, refused.code) == (409, "in_use")
    assert ada("DELETE", f"/datasets/ada/named/versions/{sha256_of(OTHER_ROWS)}").status < 300


READING = '''
"""Repeat the question."""

from proctor import Rubric, SingleTurnEnv


def load_environment(dataset: str = ""):
    rows = dataset or [{"question": "?", "answer": "?"}]
    return SingleTurnEnv(dataset=rows, rubric=Rubric(lambda completion: 1.0))
'''


@pytest.mark.usefixtures("sandboxes")
def test_a_hosted_run_reads_its_dataset_from_inside_the_sandbox(tmp_path: Path) -> None:
    with workplace(tmp_path / "w") as place:
        ada = place.person("ada")
        ada.write_environment(code=READING)
        ada.ok("env", "push", "sums", "--wait", "--json")
        (ada.home / "questions.jsonl").write_bytes(QUESTIONS * 3)
        ada.ok("dataset", "push", "questions.jsonl")

        words = ("eval", "run", "ada/sums", "--hosted", "--follow", "-m", "parrot", "-n", "-1", "-r", "1")
        followed = ada.ok(*words, "-a", '{"dataset": "ada/questions"}')

        assert "3 of 3 rollouts scored" in followed.stdout
        (run,) = ada.ok("eval", "list", "--json").json["runs"]
        told = json.dumps(ada.ok("eval", "info", run["id"], "--json").json)
        assert f"ada/questions@{sha256_of(QUESTIONS * 3)}" in told
