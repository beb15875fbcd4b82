"""`proctor eval run` of a recipe, as a user runs it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.config.test_experiment import SEED_SAMPLE
from tests.conftest import Ran
from tests.projects.conftest import MadeProject

Proctor = Callable[..., Ran]
RUN = ("eval", "run", "configs/eval/my.toml", "--json")


def rows_of(ran: Ran) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (ran.folder / "results.jsonl").read_text().splitlines()]
    latest = {(line["example_id"], line["rollout"]): line for line in lines}
    return [latest[key] for key in sorted(latest)]


def test_without_a_limit_a_recorded_random_tenth_is_played(project: MadeProject, proctor: Proctor) -> None:
    ran = proctor(*RUN)

    assert ran.code == 0, ran.stderr
    metadata = json.loads((ran.folder / "metadata.json").read_text())
    rows = [row["example_id"] for row in rows_of(ran)]
    assert len(rows) == 3
    assert metadata["environment"]["rows"] == ",".join(map(str, rows))
    assert metadata["environment"]["sampling_seed"] == 0
    assert metadata["selection"].startswith("3 of 30 rows: a random 10% (seed 0): ")
    assert len(metadata["config_hash"]) == 16
    assert metadata["environment"]["rollout"] == "my-rollout"
    assert ran.folder.is_relative_to(project.root / "outputs")


def test_limit_attempts_and_threshold_are_those_of_the_recipe(project: MadeProject, proctor: Proctor) -> None:
    project.write_recipe("[evaluation]\nlimit = 4\nn = 2\nbatch_size = 3\npass_threshold = 0.5\n")

    ran = proctor(*RUN)

    assert [(row["example_id"], row["rollout"]) for row in rows_of(ran)] == [
        (row, attempt) for row in range(4) for attempt in range(2)
    ]
    metadata = json.loads((ran.folder / "metadata.json").read_text())
    assert metadata["config"]["max_concurrent"] == 6
    assert ran.summary["pass_threshold"] == 0.5


def test_rows_and_offset_select_others(project: MadeProject, proctor: Proctor) -> None:
    project.write_recipe("[evaluation]\nlimit = 2\n")

    named = proctor(*RUN, "--rows", "3,7,10-12")
    later = proctor(*RUN, "--offset", "5")

    assert [row["example_id"] for row in rows_of(named)] == [3, 7, 10, 11, 12]
    assert [row["example_id"] for row in rows_of(later)] == [5, 6]


def test_a_dry_run_shows_the_rows_and_calls_no_model(project: MadeProject, say: Proctor) -> None:
    document = json.loads(say(*RUN, "--dry-run").stdout)

    assert document["planned_rollouts"] == 3
    assert document["selection"].startswith("3 of 30 rows: a random 10%")
    assert not (project.root / "outputs").exists()


def test_only_failed_rows_are_retried(project: MadeProject, proctor: Proctor) -> None:
    project.write_recipe("[evaluation]\nlimit = 3\n")
    first = proctor(*RUN, environ={"CRASH_ON": "say 1"})

    again = proctor(*RUN, "--retry-failed")

    assert again.folder == first.folder
    assert [len(row.get("earlier_attempts") or []) for row in rows_of(again)] == [0, 1, 0]
    assert first.summary["outcomes"] == {"scored": 2, "agent_error": 1}
    assert again.summary["outcomes"] == {"scored": 3}


def test_retrying_without_an_earlier_run_is_refused(project: MadeProject, say: Proctor) -> None:
    ran = say(*RUN, "--retry-failed")

    assert ran.code == 2
    assert "No earlier run of my-rollout has these settings; leave out --retry-failed." in ran.stderr


def test_fresh_archives_earlier_runs(project: MadeProject, proctor: Proctor) -> None:
    first = proctor(*RUN)

    second = proctor(*RUN, "--fresh")

    assert second.code == 0
    archived = project.root / "outputs/archive/my-rollout--scripted" / first.folder.name
    assert (archived / "results.jsonl").is_file()
    assert [path.name for path in second.folder.parent.iterdir()] == [second.folder.name]
    assert "Moved earlier runs to" in second.stderr


def test_variables_and_secrets_reach_the_rollout_and_no_value_is_stored(
    project: MadeProject, proctor: Proctor
) -> None:
    project.write_recipe(
        '[evaluation]\nlimit = 1\n[env]\nMODE = "fast"\n[secrets]\nrequired = ["KEY", "TWO"]\n'
    )
    (project.rollout / "main.py").write_text(
        "import os\nassert (os.environ['MODE'], os.environ['KEY']) == ('fast', 'from-the-file')\n"
        + (project.rollout / "main.py").read_text()
    )
    (project.root / "secrets.env").write_text("KEY=from-the-file\n")

    missing = proctor(*RUN)
    ran = proctor(*RUN, "--secrets-file", "secrets.env", environ={"KEY": "ambient", "TWO": "s3cret"})

    assert missing.code == 2
    assert "my.toml:11: KEY, TWO are not set" in missing.stderr
    assert ran.code == 0, ran.stderr
    stored = "".join(path.read_text() for path in ran.folder.iterdir() if path.is_file())
    assert "from-the-file" not in stored
    assert "s3cret" not in stored


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("-n", "5"), "my.toml sets --num-examples; change it there."),
        (("--hosted",), "`proctor eval submit configs/eval/my.toml` runs one on a server"),
        (("--fresh", "--retry-failed"), "--fresh and --retry-failed exclude each other"),
        (("--rows", "1", "--offset", "2"), "--rows names the rows, and --offset skips some"),
        (("--rows", "99"), "--rows names row 99; the dataset has 30, from 0 to 29"),
        (("--dataset-file", "nowhere.csv"), "There is no dataset 'nowhere.csv'"),
    ],
)
def test_words_that_make_no_sense_beside_a_recipe_are_refused(
    project: MadeProject, say: Proctor, words: tuple[str, ...], problem: str
) -> None:
    ran = say(*RUN, *words)

    assert ran.code == 2
    assert problem in ran.stderr


def test_flags_of_recipes_are_refused_elsewhere(say: Proctor) -> None:
    ran = say("eval", "run", "echo", "-m", "scripted", "--rows", "3")

    assert (ran.code, ran.stderr) == (2, "Error: --rows is for recipes; see --help.\n")


def test_what_a_recipe_names_and_is_not_there_is_reported_with_its_line(
    project: MadeProject, say: Proctor
) -> None:
    project.recipe.write_text(project.recipe.read_text().replace("my-rollout", "my-rolout"))
    rollout = say(*RUN)
    project.write_recipe()
    project.recipe.write_text(project.recipe.read_text().replace("my-dataset", "my-data"))
    dataset = say(*RUN)
    project.write_recipe()
    project.recipe.write_text(project.recipe.read_text().replace("main.py", "run.py"))
    entrypoint = say(*RUN)

    assert "my.toml:2: There is no rollout 'my-rolout'" in rollout.stderr
    assert "did you mean 'my-rollout'?" in rollout.stderr
    assert "my.toml:5: There is no dataset 'my-data'" in dataset.stderr
    assert "my.toml:3:" in entrypoint.stderr
    assert "has no file 'run.py'" in entrypoint.stderr


def test_a_changed_dataset_is_not_resumed(project: MadeProject, proctor: Proctor) -> None:
    project.write_recipe("[evaluation]\nlimit = 2\n")
    first = proctor(*RUN, environ={"CRASH_ON": "say 1"})
    project.dataset.write_text(project.dataset.read_text().replace("say 29", "say 30"))

    ran = proctor(*RUN, "--resume", str(first.folder))

    assert ran.code == 2
    assert "environment arguments (-a): sha256 was " in ran.stderr
    assert "folder" not in ran.stderr.partition("cannot be resumed")[2]


def test_the_report_labels_both_rewards_and_what_they_are_over(
    project: MadeProject, proctor: Proctor
) -> None:
    project.write_recipe("[evaluation]\nlimit = 4\nbatch_size = 4\n")

    ran = proctor(*RUN[:-1], environ={"CRASH_ON": "say 1"})

    assert "pass rate  0.750   3 of 4 attempts (reward ≥ 1)" in ran.stdout
    assert "1.000 over the 3 graded attempts" in ran.stdout
    assert "0.750 over all 4, failed ones as 0" in ran.stdout
    assert "3 graded, 1 failed, 0 skipped" in ran.stdout


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_recipe_that_pins_other_code_than_is_here_warns(project: MadeProject, say: Proctor) -> None:
    git(project.root, "init", "-q")
    git(project.root, "add", "-A")
    git(project.root, "commit", "-qm", "first")
    commit = git(project.root, "rev-parse", "HEAD")
    words = (*RUN, "--dry-run")

    project.write_recipe(f'commit_sha = "{commit[:10]}"\n')
    same = say(*words)
    (project.rollout / "main.py").write_text((project.rollout / "main.py").read_text() + "# changed\n")
    changed = say(*words)
    project.write_recipe('branch = "other"\n')
    other = say(*words)

    assert "Warning" not in same.stderr
    assert f"names commit {commit[:10]}, and a local run plays the files that are here" in changed.stderr
    assert "with uncommitted changes" in changed.stderr
    assert "names branch other" in other.stderr


def test_the_sample_of_the_documentation_runs_as_it_is_printed(
    project: MadeProject, proctor: Proctor
) -> None:
    project.recipe.write_text(SEED_SAMPLE)
    (project.root / "configs/endpoints.toml").write_text(
        '[[endpoint]]\nendpoint_id = "openai/gpt-5-mini"\nmodel = "gpt-5-mini"\ntype = "scripted"\n'
    )

    ran = proctor(*RUN)

    assert ran.code == 0, ran.stderr
    assert ran.summary["scores"]["attempts"] == 3
    assert ran.summary["scores"]["pass_rate"] == 1.0


def test_secrets_may_come_from_stdin(project: MadeProject, proctor: Proctor) -> None:
    project.write_recipe('[evaluation]\nlimit = 1\n[secrets]\nrequired = ["KEY"]\n')
    source = (project.rollout / "main.py").read_text()
    (project.rollout / "main.py").write_text(f"import os\nassert os.environ['KEY'] == 'piped'\n{source}")

    ran = proctor(*RUN, "--secrets-file", "-", input="KEY=piped\n", stdin=None)

    assert ran.code == 0, ran.stderr
