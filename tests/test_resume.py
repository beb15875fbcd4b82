"""Going on with a run: what is owed, what is refused, and which run is meant."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor.endpoints.endpoint import SharedEndpoint
from proctor.errors import ConfigError, ModelTimeoutError
from proctor.evaluation.evaluate import LATEST, Control, Result, prepare, run
from proctor.events import Event, RolloutStarted, RunStarted
from proctor.models.scripted import Scripted, Step
from proctor.store.folder import read_metadata
from proctor.trace import text_of

if TYPE_CHECKING:
    from tests.conftest import Ran

Row = dict[str, Any]

ENVIRONMENT = """
from proctor import Rubric, SingleTurnEnv, ToolEnv
from proctor.env.echo import repeats

def best(completions) -> list[float]:
    return [float(len(completions))] * len(completions)

def look_up(word: str) -> str:
    "Look a word up."
    return word

def load_environment(kind="plain", tasks=4):
    rows = [{"question": f"say {n}", "answer": f"say {n}"} for n in range(tasks)]
    if kind == "grouped":
        return SingleTurnEnv(rows, rubric=Rubric(best))
    if kind == "lazy":
        return SingleTurnEnv(lambda: iter(rows), rubric=Rubric(repeats))
    if kind == "tools":
        return ToolEnv(rows, tools=[look_up], rubric=Rubric(repeats))
    return SingleTurnEnv(rows, rubric=Rubric(repeats))
"""

OTHER_MODEL: dict[str, Any] = {"model": "other", "api_client_type": "scripted"}


@dataclass
class Evaluated:
    """An evaluation, and what the model was asked in it."""

    result: Result
    model: Scripted
    finished_before: int

    @property
    def folder(self) -> Path:
        return self.result.folder

    @property
    def asked(self) -> list[str]:
        return sorted(text_of(request.messages[-1]) for request in self.model.requests)

    @property
    def rows(self) -> dict[tuple[Any, int], Row]:
        rows = rows_in(self.folder / "results.jsonl")
        by_key = {(row["example_id"], row["rollout"]): row for row in rows}
        assert len(by_key) == len(rows), "a rollout is stored twice"
        return by_key


def rows_in(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with an environment of four tasks in it."""
    (tmp_path / "env.py").write_text(ENVIRONMENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluated(
    script: Any = (),
    *,
    resume: str | Path | None = None,
    stop_after: int | None = None,
    accept_changed: tuple[str, ...] = (),
    **given: Any,
) -> Evaluated:
    """Evaluate ./env.py with two rollouts a task, saved; or as much of it as until it is stopped."""
    control, started, begun = Control(), [], Counter[str]()

    def listen(event: Event) -> None:
        if isinstance(event, RunStarted):
            started.append(event.finished_before)
        if isinstance(event, RolloutStarted):  # one at a time: the one that starts now is the last
            begun["rollouts"] += 1
            if begun["rollouts"] == stop_after:
                control.stop()

    defaults = {
        "env_id": "./env.py",
        "model": "scripted",
        "rollouts_per_example": 2,
        "num_examples": 4,
        "save_results": True,
        "max_concurrent": 1,
    }
    model = Scripted(script)

    async def main() -> Result:
        prepared = prepare({**defaults, **given}, {})
        resumed = None if resume is None else str(resume)
        return await run(
            prepared,
            [listen],
            control=control,
            service=SharedEndpoint(model),
            resume=resumed,
            accept_changed=accept_changed,
        )

    result = asyncio.run(main())
    return Evaluated(result, model, started[0])


def keys(tasks: Iterable[int], rollouts: int = 2) -> set[tuple[int, int]]:
    return {(task, number) for task in tasks for number in range(rollouts)}


# What is owed


def test_a_finished_run_returns_at_once_with_the_results_it_has(home: Path) -> None:
    first = evaluated()
    content = (first.folder / "results.jsonl").read_bytes()

    again = evaluated(resume=first.folder)

    assert again.asked == []
    assert again.finished_before == 8
    assert (again.folder / "results.jsonl").read_bytes() == content
    assert again.result.summary == first.result.summary
    assert (again.result.run.id, again.result.run.status) == (first.result.run.id, "finished")


def test_an_interrupted_run_goes_on_with_exactly_what_is_owed(home: Path) -> None:
    stopped = evaluated(stop_after=3)
    assert stopped.result.run.status == "stopped"
    done = stopped.rows.keys()
    assert 3 <= len(done) < 8

    rest = evaluated(resume=stopped.folder)

    assert rest.finished_before == len(done)
    assert rest.asked == sorted(f"say {task}" for task, _ in keys(range(4)) - done)
    assert rest.rows.keys() == keys(range(4))
    assert (rest.result.summary.scored, rest.result.summary.coverage) == (8, 1.0)
    metadata = read_metadata(rest.folder)
    assert (metadata["status"], metadata["settled"], metadata["planned"]) == ("finished", 8, 8)
    assert metadata["run_id"] == rest.folder.name


def test_a_run_that_was_stopped_before_its_first_rollout_keeps_its_name(home: Path) -> None:
    stopped = evaluated(stop_after=1)
    (stopped.folder / "results.jsonl").write_bytes(b"")

    again = evaluated(resume=stopped.folder)

    assert len(again.asked) == 8
    assert again.result.run.id == read_metadata(again.folder)["run_id"] == stopped.folder.name


def test_a_rollout_that_failed_is_owed_again_and_remembers_every_try(home: Path) -> None:
    busy = {"say 1": Step(error="timeout", text="busy"), "say 2": Step(error="refused", text="no")}

    first = evaluated(busy)
    second = evaluated({"say 2": Step(error="timeout", text="slow")}, resume=first.folder)
    third = evaluated(resume=first.folder)

    assert second.asked == ["say 1", "say 1", "say 2", "say 2"]
    assert third.asked == ["say 2", "say 2"]
    assert third.rows.keys() == keys(range(4))
    assert "attempts" not in third.rows[0, 0]
    row = third.rows[1, 0]
    assert (row["outcome"], row["attempts"]) == ("scored", 2)
    (attempt,) = row["earlier_attempts"]
    assert (attempt["outcome"], attempt["error"]["message"]) == ("model_error", "busy")
    assert attempt["error"]["phase"] == "generation"
    assert attempt["start"] > 1e9
    row = third.rows[2, 0]
    assert row["attempts"] == 3
    assert [attempt["error"]["message"] for attempt in row["earlier_attempts"]] == ["no", "slow"]
    assert third.result.summary.retried == 4
    superseded = rows_in(first.folder / "superseded.jsonl")
    assert Counter((row["example_id"], row["error"]["message"]) for row in superseded) == {
        (1, "busy"): 2,
        (2, "no"): 2,
        (2, "slow"): 2,
    }


def test_a_torn_last_line_is_played_again(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    stopped = evaluated(stop_after=3)
    results = stopped.folder / "results.jsonl"
    results.write_bytes(results.read_bytes()[:-40])
    whole = len(results.read_bytes().splitlines()) - 1

    with caplog.at_level(logging.WARNING, "proctor"):
        rest = evaluated(resume=stopped.folder)

    assert len(rest.asked) == 8 - whole
    assert rest.rows.keys() == keys(range(4))
    assert "1 lines of" in caplog.text
    assert "played again" in caplog.text


def test_a_group_that_lacks_a_rollout_is_played_whole(home: Path) -> None:
    given: dict[str, Any] = {"env_args": {"kind": "grouped"}}
    first = evaluated({"say 1": ["said", ModelTimeoutError("busy")]}, **given)
    assert first.rows[1, 0]["outcome"] == "scored"
    assert first.rows[1, 0]["reward"] == 1.0, "scored without its sibling"
    assert first.rows[1, 1]["outcome"] == "model_error"

    rest = evaluated(resume=first.folder, **given)

    assert rest.asked == ["say 1", "say 1"]
    assert rest.rows.keys() == keys(range(4))
    assert {row["reward"] for row in rest.rows.values()} == {2.0}
    assert rest.rows[1, 1]["attempts"] == 2


def test_a_run_stopped_amid_groups_loses_no_whole_one(home: Path) -> None:
    given: dict[str, Any] = {"env_args": {"kind": "grouped"}}
    stopped = evaluated(stop_after=4, **given)
    results = stopped.folder / "results.jsonl"
    results.write_bytes(b"".join(results.read_bytes().splitlines(keepends=True)[:-1]))
    whole = (len(stopped.rows) - 1) // 2

    rest = evaluated(resume=stopped.folder, **given)

    assert rest.finished_before == 2 * whole
    assert rest.asked == sorted(f"say {task}" for task, _ in keys(range(whole, 4)))
    assert rest.rows.keys() == keys(range(4))


def test_tools_that_rows_leave_out_stay_told_after_a_resume(home: Path) -> None:
    given: dict[str, Any] = {"env_args": {"kind": "tools"}}
    stopped = evaluated(stop_after=3, **given)
    told = read_metadata(stopped.folder)["tools"]

    finished = evaluated(resume=stopped.folder, **given)
    again = evaluated(resume=stopped.folder, **given)

    assert [tool["name"] for tool in told] == ["look_up"]
    assert read_metadata(again.folder)["tools"] == told
    assert not any("tool_defs" in row for row in finished.rows.values())


def test_a_timeout_without_a_score_is_owed_and_one_with_a_score_is_not(home: Path) -> None:
    first = evaluated(num_examples=1)
    results = first.folder / "results.jsonl"
    scored, other = rows_in(results)
    late = {"error": "DeadlineError", "message": "starting took more than 5 s", "phase": "setup"}
    rows = [{**scored, "outcome": "timeout"}, {**other, "outcome": "timeout", "reward": None, "error": late}]
    results.write_text("".join(json.dumps(row) + "\n" for row in rows))

    rest = evaluated(num_examples=1, resume=first.folder)

    assert (rest.finished_before, rest.asked) == (1, ["say 0"])
    assert sorted(row["outcome"] for row in rest.rows.values()) == ["scored", "timeout"]
    assert (rest.result.summary.scored, rest.result.summary.timed_out) == (2, 1)


# What may grow


def test_more_tasks_and_more_rollouts_are_welcome(home: Path) -> None:
    small = evaluated(num_examples=2)

    more_tasks = evaluated(resume=small.folder, num_examples=3)
    assert more_tasks.asked == ["say 2", "say 2"]

    more_rollouts = evaluated(resume=small.folder, num_examples=3, rollouts_per_example=3)
    assert more_rollouts.asked == ["say 0", "say 1", "say 2"]

    everything = evaluated(resume=small.folder, num_examples=-1, rollouts_per_example=3)
    assert everything.asked == ["say 3"] * 3
    assert everything.rows.keys() == keys(range(4), 3)


def test_what_only_changes_the_pace_or_the_picture_may_change(home: Path) -> None:
    stopped = evaluated(stop_after=3)

    rest = evaluated(
        resume=stopped.folder,
        max_concurrent=7,
        max_retries=2,
        start_timeout=5.0,
        timeout=5.0,
        scoring_timeout=5.0,
        state_columns=("turn",),
        min_coverage=0.5,
        seed=9,
    )

    assert rest.rows.keys() == keys(range(4))


# What is refused


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"env_args": {"tasks": 5}}, r"environment arguments \(-a\): tasks was not set and is now 5"),
        ({"extra_env_kwargs": {"max_turns": 2}}, r"environment settings \(-x\)"),
        ({"temperature": 0.5}, r"sampling \(-t, -T, -S\): temperature was not set and is now 0.5"),
        ({"sampling_args": {"top_p": 1}}, "sampling"),
        (
            {"model": "other", "api_client_type": "scripted"},
            r"model \(-m\) was 'scripted' and is now 'other'",
        ),
        ({"api_base_url": "script.jsonl"}, r"endpoint \(-b\) was '' and is now 'script.jsonl'"),
        ({"num_examples": 3}, "-n was 4 and is now 3, which is fewer tasks"),
        ({"rollouts_per_example": 1}, "-r was 2 and is now 1, which is fewer rollouts"),
        ({"shuffle": True}, "--shuffle was False and is now True"),
        (
            {"temperature": 1.0, "num_examples": 1},
            "sampling.*; -n was 4 and is now 1",
        ),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_a_changed_setting_is_refused_by_name_and_nothing_is_lost(
    home: Path, changed: Mapping[str, Any], named: str
) -> None:
    stopped = evaluated({"say 0": ModelTimeoutError("busy")}, stop_after=3)
    before = {path.name: path.read_bytes() for path in stopped.folder.iterdir()}

    with pytest.raises(ConfigError, match=rf"cannot be resumed: .*{named}"):
        evaluated(resume=stopped.folder, **changed)

    assert {path.name: path.read_bytes() for path in stopped.folder.iterdir()} == before
    assert evaluated(resume=stopped.folder).rows.keys() == keys(range(4))


def test_another_seed_of_the_shuffle_is_refused(home: Path) -> None:
    stopped = evaluated(stop_after=3, shuffle=True, seed=1)

    with pytest.raises(ConfigError, match="--seed was 1 and is now 2"):
        evaluated(resume=stopped.folder, shuffle=True, seed=2)

    assert evaluated(resume=stopped.folder, shuffle=True, seed=1).rows.keys() == keys(range(4))


def test_all_tasks_cannot_become_fewer(home: Path) -> None:
    stopped = evaluated(stop_after=3, num_examples=-1)

    with pytest.raises(ConfigError, match="-n was -1 and is now 100, which is fewer tasks"):
        evaluated(resume=stopped.folder, num_examples=100)


def test_a_task_whose_content_changed_is_refused_and_no_finished_row_is_lost(home: Path) -> None:
    stopped = evaluated(stop_after=5)
    before = (stopped.folder / "results.jsonl").read_bytes()
    (home / "env.py").write_text(ENVIRONMENT.replace('"question": f"say {n}"', '"question": f"tell {n}"'))

    with pytest.raises(ConfigError, match="task 0 has changed since; start a new run"):
        evaluated(resume=stopped.folder)

    assert (stopped.folder / "results.jsonl").read_bytes() == before
    (home / "env.py").write_text(ENVIRONMENT)
    assert evaluated(resume=stopped.folder).rows.keys() == keys(range(4))


def test_other_code_with_the_same_tasks_may_go_on_but_is_mentioned(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stopped = evaluated(stop_after=3)
    with caplog.at_level(logging.WARNING, "proctor"):
        evaluated(resume=stopped.folder, num_examples=4)
        assert caplog.text == ""
        (home / "env.py").write_text(ENVIRONMENT + "# changed\n")
        again = evaluated(resume=stopped.folder)

    assert "The code of env has changed since this run was started" in caplog.text
    assert again.rows.keys() == keys(range(4))


def test_an_environment_that_lost_tasks_is_refused(home: Path) -> None:
    finished = evaluated(num_examples=-1)
    (home / "env.py").write_text(ENVIRONMENT.replace("tasks=4", "tasks=3"))

    with pytest.raises(ConfigError, match=r"holds 8 finished rollouts, .* has tasks for 6 only"):
        evaluated(resume=finished.folder, num_examples=-1)

    assert finished.rows.keys() == keys(range(4))


def test_a_folder_that_is_no_run_is_refused(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere is not a run: .*Give --resume the folder of a run"):
        evaluated(resume="nowhere")

    assert not (home / "nowhere").exists()


# Which run is meant


def aged(result: Evaluated, seconds: int) -> Path:
    """Make a run look older."""
    stamp = result.folder.stat().st_mtime - seconds
    os.utime(result.folder, (stamp, stamp))
    return result.folder


def test_without_a_path_the_latest_unfinished_run_goes_on_wherever_it_is_kept(home: Path) -> None:
    saved = evaluated(stop_after=3)
    journaled = evaluated(stop_after=4, save_results=False)
    aged(saved, 100)
    assert saved.folder.is_relative_to("outputs")
    assert journaled.folder.is_relative_to(home / "state")

    assert evaluated(resume=LATEST, save_results=False).folder == journaled.folder
    assert evaluated(resume=LATEST).folder == saved.folder, "the other one is finished now"


def test_a_journaled_run_that_is_to_be_saved_moves_to_where_it_is_not_forgotten(home: Path) -> None:
    journaled = evaluated(stop_after=4, save_results=False)

    saved = evaluated(resume=LATEST, save_results=True)

    assert saved.folder.name == journaled.folder.name
    assert not saved.folder.is_relative_to(home / "state")
    assert len((saved.folder / "results.jsonl").read_text().splitlines()) == 8
    assert not journaled.folder.exists()


def test_without_a_path_runs_with_other_settings_are_left_alone(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    others = [
        evaluated(stop_after=3, env_args={"tasks": 9}),
        evaluated(stop_after=3, temperature=0.5),
        evaluated(stop_after=3, **OTHER_MODEL),
        evaluated(stop_after=3, shuffle=True),
        evaluated(stop_after=3, rollouts_per_example=3),
        evaluated(stop_after=3, num_examples=-1),
    ]
    finished = evaluated()
    (home / "outputs/evals/env--scripted/junk").mkdir()

    with caplog.at_level(logging.WARNING, "proctor"):
        new = evaluated(resume=LATEST)

    assert "No unfinished run of env has these settings; starting a new one." in caplog.text
    assert new.folder not in [other.folder for other in (*others, finished)]
    assert len(new.asked) == 8


def test_without_a_path_a_finished_run_goes_on_when_more_is_asked_for_or_something_failed(home: Path) -> None:
    small = evaluated(num_examples=2)
    assert evaluated(resume=LATEST, num_examples=3).folder == small.folder

    failed = evaluated({"say 3": ModelTimeoutError("busy")}, num_examples=-1)
    again = evaluated(resume=LATEST, num_examples=-1)
    assert again.folder == failed.folder
    assert again.asked == ["say 3", "say 3"]


def test_without_a_path_a_finished_run_of_uncounted_tasks_is_finished(home: Path) -> None:
    lazy: dict[str, Any] = {"env_args": {"kind": "lazy"}, "num_examples": -1}
    stopped = evaluated(stop_after=3, **lazy)

    finished = evaluated(resume=LATEST, **lazy)
    new = evaluated(resume=LATEST, **lazy)

    assert finished.folder == stopped.folder
    assert finished.rows.keys() == keys(range(4))
    assert finished.result.summary.coverage == 1.0
    assert new.folder != stopped.folder
    assert evaluated(resume=LATEST, **lazy, rollouts_per_example=3).folder == new.folder


# On the command line


def test_the_command_line_goes_on_where_it_was_cut(proctor: Callable[..., Ran], tmp_path: Path) -> None:
    words = ("eval", "run", "echo", "-m", "scripted", "-a", '{"tasks": 7}', "-r", "2", "-s", "--json")
    first = proctor(*words, "-n", "3")
    assert first.code == 0
    results = first.folder / "results.jsonl"
    results.write_bytes(results.read_bytes()[:-50])

    rest = proctor(*words, "-n", "-1", "--resume")

    assert rest.code == 0
    assert rest.folder == first.folder
    assert [(row["example_id"], row["rollout"]) for row in rest.rows] == sorted(keys(range(7)))
    assert rest.summary["coverage"] == 1.0

    refused = proctor(*words, "-n", "3", "-R", str(first.folder))

    assert refused.code == 2
    assert refused.stdout == ""
    assert refused.stderr.splitlines()[-1].startswith("Error: ")
    assert "-n was -1 and is now 3, which is fewer tasks" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert len(rest.rows) == 14

    missing = proctor(*words, "-n", "-1", "--resume", "nowhere")

    assert missing.code == 2
    assert "nowhere is not a run" in missing.stderr.splitlines()[-1]


def test_the_command_line_says_so_when_there_is_nothing_to_resume(proctor: Callable[..., Ran]) -> None:
    ran = proctor("eval", "run", "echo", "-m", "scripted", "-n", "1", "-r", "1", "--json", "--resume")

    assert ran.code == 0
    assert "No unfinished run of echo has these settings; starting a new one." in ran.stderr
    assert len(ran.rows) == 1


# What is said


def test_a_resumed_run_says_what_it_took_over(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = {"say 1": ModelTimeoutError("busy")}
    stopped = evaluated(broken, stop_after=5)

    with caplog.at_level(logging.INFO, "proctor"):
        rest = evaluated(resume=stopped.folder)

    assert "3 finished rollouts taken over, 2 failed and played again, 3 not played before." in caplog.text
    assert rest.result.taken_over is not None
    assert (rest.result.taken_over.finished, rest.result.taken_over.failed) == (3, 2)
    assert evaluated().result.taken_over is None


def test_resuming_a_finished_run_says_that_nothing_is_left(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    finished = evaluated()

    with caplog.at_level(logging.INFO, "proctor"):
        evaluated(resume=finished.folder)

    assert "8 finished rollouts taken over, nothing left to play." in caplog.text


def test_a_folder_without_results_is_refused_and_not_played_again(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stopped = evaluated(stop_after=3)
    (stopped.folder / "results.jsonl").unlink()

    with pytest.raises(ConfigError, match=r"has metadata\.json but no results\.jsonl.* start a new run"):
        evaluated(resume=stopped.folder)
    fresh = evaluated(resume=LATEST)

    assert fresh.folder != stopped.folder
    assert "its finished rollouts are gone" in caplog.text


def test_results_that_got_lost_are_mentioned(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    stopped = evaluated(stop_after=5)
    results = stopped.folder / "results.jsonl"
    results.write_bytes(results.read_bytes().splitlines(keepends=True)[0])
    evaluated(resume=stopped.folder)
    assert "counts 5 finished rollouts, but results.jsonl holds 1; the others are played again" in caplog.text


def test_a_server_that_moved_is_accepted_by_name_and_recorded(home: Path) -> None:
    for name in ("old", "new", "newer"):
        (home / name).write_text('{"text": "x"}')
    stopped = evaluated(stop_after=3, api_base_url="old")

    with pytest.raises(ConfigError, match="add --accept-changed api_base_url"):
        evaluated(resume=stopped.folder, api_base_url="new")
    moved: dict[str, Any] = {"resume": stopped.folder, "accept_changed": ("api_base_url",)}
    evaluated(stop_after=2, api_base_url="new", **moved)
    rest = evaluated(api_base_url="newer", **moved)

    changes = read_metadata(rest.folder)["accepted_changes"]
    assert [(change["before"], change["after"]) for change in changes] == [("old", "new"), ("new", "newer")]
    assert rest.rows.keys() == keys(range(4))


def test_only_an_address_may_be_accepted_and_only_to_resume(home: Path) -> None:
    stopped = evaluated(stop_after=3)
    with pytest.raises(ConfigError, match="takes api_base_url, not 'model'"):
        evaluated(resume=stopped.folder, accept_changed=("model",))
    with pytest.raises(ConfigError, match="pass --resume as well"):
        evaluated(accept_changed=("api_base_url",))
