"""`proctor jobs`, as its users see it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Ran

    Run = Callable[..., Ran]

NARROW = {"COLUMNS": "80"}
PIPED = {"COLUMNS": ""}
SCRIPT = [
    {"when": "say 0", "text": "say 0"},
    {"when": "say 1", "text": "no, no, no \u001b[31m[bold]"},
    {"when": "say 2", "error": "refused", "text": "no such \u001b]0;title\u0007model"},
]


@pytest.fixture
def ran(proctor: Run, tmp_path: Path) -> dict[str, Any]:
    """A saved run with a failure, and a journaled one of a sweep."""
    (tmp_path / "script.jsonl").write_text("\n".join(map(json.dumps, SCRIPT)))
    words = ("eval", "run", "echo", "-m", "scripted", "-r", "1", "--json", "-d")
    saved = proctor(*words, "-n", "3", "-b", "script.jsonl", "-s")
    journaled = proctor(*words, "-n", "2")
    return {"saved": json.loads(saved.stdout), "journaled": json.loads(journaled.stdout)}


def run_id(ran: dict[str, Any], which: str) -> str:
    return str(ran[which]["run"]["id"])


def test_runs_are_listed_newest_first_in_80_columns(proctor: Run, ran: dict[str, Any]) -> None:
    shown = proctor("jobs", environ=NARROW)

    assert shown.code == 0
    head, newest, older = shown.stdout.splitlines()
    assert head.split() == ["run", "environment", "model", "when", "status", "done", "reward", "interval"]
    assert newest.split()[:3] == [run_id(ran, "journaled"), "echo", "scripted"]
    assert older.split()[:3] == [run_id(ran, "saved"), "echo", "scripted"]
    assert older.split()[4:7] == ["finished", "2/3", "0.500"]
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_where_there_is_room_the_folder_is_shown(proctor: Run, ran: dict[str, Any]) -> None:
    _, row, rest = proctor("jobs", "-n", "1", environ=PIPED).stdout.splitlines()

    assert row.endswith(ran["journaled"]["folder"])
    assert rest == "… 1 older run; -n -1 shows all."


def test_a_program_reads_the_runs_as_one_object(proctor: Run, ran: dict[str, Any]) -> None:
    listed = json.loads(proctor("jobs", "--json", "-n", "-1").stdout)

    assert listed["found"] == 2
    assert [run["id"] for run in listed["runs"]] == [run_id(ran, "journaled"), run_id(ran, "saved")]
    saved = listed["runs"][1]
    assert saved["folder"] == ran["saved"]["folder"]
    assert saved["reward"] == ran["saved"]["summary"]["reward"]
    assert (saved["status"], saved["settled"], saved["planned"]) == ("finished", 2, 3)


def test_only_the_folder_named_is_looked_into(proctor: Run, ran: dict[str, Any], tmp_path: Path) -> None:
    only = json.loads(proctor("jobs", "--json", "--dir", "outputs").stdout)
    gone = proctor("jobs", "--dir", "gone")
    (tmp_path / "empty").mkdir()
    nothing = proctor("jobs", "latest", "--dir", "empty")

    assert [run["id"] for run in only["runs"]] == [run_id(ran, "saved")]
    assert (gone.code, gone.stderr) == (
        2,
        "Error: No folder 'gone'; pass --dir the folder that you passed to -o.\n",
    )
    assert (nothing.code, nothing.stderr) == (
        2,
        "Error: No runs in empty; name another folder with --dir.\n",
    )


def test_without_a_run_it_is_said_where_one_was_looked_for(proctor: Run, tmp_path: Path) -> None:
    shown = proctor("jobs")

    assert (shown.code, shown.stdout) == (0, "")
    assert shown.stderr.startswith(f"No runs in outputs or {tmp_path / 'state'}")


def test_a_damaged_run_is_listed_with_what_is_wrong(
    proctor: Run, ran: dict[str, Any], tmp_path: Path
) -> None:
    metadata = tmp_path / ran["saved"]["folder"] / "metadata.json"
    metadata.write_text(metadata.read_text()[:100])

    shown = proctor("jobs", environ=NARROW)

    assert shown.code == 0
    assert "damaged" in shown.stdout
    assert f"{run_id(ran, 'saved')}: metadata.json is damaged" in shown.stdout
    assert run_id(ran, "journaled") in shown.stdout


def test_long_names_and_labels_leave_the_numbers_in_sight(
    proctor: Run, ran: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / ran["saved"]["folder"] / "metadata.json"
    metadata = json.loads(path.read_text())
    metadata |= {"env_id": "a-very-long-environment-name", "model": "anthropic/claude-sonnet-4-5-20250929"}
    metadata |= {"label": "temperature=0.5 difficulty=hard", "settled": 66_667, "planned": 100_000}
    path.write_text(json.dumps(metadata))

    row, label = proctor("jobs", "--dir", "outputs", environ=NARROW).stdout.splitlines()[1:]

    assert label.strip() == "temperature=0.5 difficulty=hard"
    assert "claude-" in row
    assert row.split()[4:] == ["finished", "66.7k/100k", "0.500", row.split()[-1]]
    assert len(row) <= 80


# One run


def test_the_rollouts_of_a_run_show_how_each_ended(proctor: Run, ran: dict[str, Any]) -> None:
    saved = run_id(ran, "saved")

    shown = proctor("jobs", saved[:5], environ=PIPED)

    lines = shown.stdout.splitlines()
    assert lines[0] == "echo  with  scripted"
    assert lines[1].startswith(f"run {saved}, finished, started 2")
    assert lines[2] == ran["saved"]["folder"]
    assert lines[4].split() == ["trace", "reward", "turns", "tokens", "time", "outcome"]
    rows = {line.split()[0]: line.split(maxsplit=6) for line in lines[5:8]}
    assert rows[f"{saved}/0/0"][1:4] == ["1.000", "1", "4"]
    assert rows[f"{saved}/1/0"][1] == "0.000"
    assert rows[f"{saved}/2/0"][-1] == "model error, RequestRefusedError: no such model"
    assert lines[-1] == "3 rollouts: 2 scored, 1 model error."
    assert "\x1b" not in shown.stdout
    assert "title" not in shown.stdout


def test_failed_rollouts_can_be_looked_at_alone(proctor: Run, ran: dict[str, Any]) -> None:
    saved = run_id(ran, "saved")

    listed = json.loads(proctor("jobs", saved, "--failed", "--json").stdout)
    none = proctor("jobs", "latest", "--failed").stdout.splitlines()

    assert [(row["task"], row["outcome"]) for row in listed["rollouts"]] == [(2, "model_error")]
    assert listed["rollouts"][0]["error"]["error"] == "RequestRefusedError"
    assert (listed["outcomes"], listed["unreadable"]) == ({"scored": 2, "model_error": 1}, 0)
    assert none[-1] == "2 rollouts: 2 scored. None failed."


def test_rollouts_can_be_sorted_and_limited(proctor: Run, ran: dict[str, Any]) -> None:
    saved = run_id(ran, "saved")

    worst = json.loads(proctor("jobs", saved, "--sort", "reward", "--json").stdout)
    one = proctor("jobs", saved, "--sort", "tokens", "-n", "1").stdout.splitlines()

    assert [row["reward"] for row in worst["rollouts"]] == [0.0, 1.0, None]
    assert one[-1] == "3 rollouts: 2 scored, 1 model error. 2 more of them; -n -1 shows all."
    assert one[5].split()[1] == "0.000", "it said the most"


def test_words_that_fit_no_run_are_refused_in_one_sentence(proctor: Run, ran: dict[str, Any]) -> None:
    unknown = proctor("jobs", "nobody")
    misplaced = proctor("jobs", "--failed")

    assert unknown.code == misplaced.code == 2
    assert unknown.stderr.startswith("Error: No run 'nobody' in outputs or ")
    assert misplaced.stderr.startswith("Error: --failed and --sort apply to the rollouts of one run")


@pytest.mark.skipif(not shutil.which("head"), reason="needs head")
def test_a_reader_may_leave_early(proctor: Run, ran: dict[str, Any], tmp_path: Path) -> None:
    results = tmp_path / ran["saved"]["folder"] / "results.jsonl"
    results.write_bytes(results.read_bytes() * 3_000)
    words = (
        f"{sys.executable} -m proctor jobs {run_id(ran, 'saved')} -n -1 | head -1; echo ${{PIPESTATUS[0]}}"
    )

    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert done.stdout.splitlines() == ["echo  with  scripted", "0"]
    assert done.stderr == ""


def test_runs_saved_with_o_are_found_from_anywhere_while_their_folder_is_there(
    proctor: Run, tmp_path: Path
) -> None:
    words = ("eval", "run", "echo", "-m", "scripted", "-n", "1", "-r", "1", "--json", "-d")
    saved = json.loads(proctor(*words, "-o", "elsewhere/results").stdout)["run"]["id"]

    listed = json.loads(proctor("jobs", "--json").stdout)
    assert [run["id"] for run in listed["runs"]] == [saved]
    assert proctor("jobs", saved[:6]).code == 0
    assert proctor("trace", f"{saved}/0").code == 0

    shutil.rmtree(tmp_path / "elsewhere")
    assert json.loads(proctor("jobs", "--json").stdout)["runs"] == []


def test_agent_and_runtime_are_listed_and_shown_with_the_rollouts(proctor: Run, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(
        "from proctor import Environment\n"
        "env = Environment('words')\n"
        "@env.template()\n"
        "async def repeat(word: str):\n"
        "    answer = yield word\n"
        "    yield float(answer == word)\n"
        "tasks = [repeat(word='pear')]\n"
    )
    proctor("eval", "run", "tasks.py", "-m", "scripted", "--runtime", "local", "--json", "-d")

    (told,) = json.loads(proctor("jobs", "--json").stdout)["runs"]
    assert (told["agent"], told["runtime"]) == ("tool_loop", "local")
    head, row = proctor("jobs", environ=PIPED).stdout.splitlines()
    assert {"agent", "runtime"} <= set(head.split())
    assert {"tool_loop", "local"} <= set(row.split())
    assert "agent tool_loop, runtime local" in proctor("jobs", environ=NARROW).stdout
    assert "agent tool_loop, runtime local" in proctor("trace", "latest").stdout
