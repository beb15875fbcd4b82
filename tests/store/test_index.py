"""Runs and rollouts are found where they lie, by the words people have for them."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import ConfigError, Failure
from proctor.rollout import Rollout, Score
from proctor.store.folder import RunFolder
from proctor.store.index import find_run, read_run, run_folders, search_folders
from proctor.store.rows import encode_row
from proctor.store.traces import Brief, RolloutCounts, find_trace, list_briefs
from proctor.trace import ModelCall, Reply, Trace, Usage

Made = Callable[..., Rollout]
Keep = Callable[..., Path]
BUSY = Failure("OverloadedError", "busy", "generation")


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    """Puts a run into a folder; each is newer than the one before."""
    made: list[Path] = []

    def put(run_id: str, rows: list[Rollout] | None = None, group: str = "echo--m", **metadata: Any) -> Path:
        folder = tmp_path / "outputs" / "evals" / group / run_id
        folder.mkdir(parents=True)
        known = {"env_id": "echo", "model": "m", "status": "finished", "date": "2026-01-02T03:04:05Z"}
        (folder / "metadata.json").write_text(json.dumps({**known, **metadata}))
        (folder / "results.jsonl").write_bytes(b"".join(map(encode_row, rows or [])))
        made.append(folder)
        os.utime(folder, (len(made), len(made)))
        return folder

    return put


@pytest.fixture
def where(tmp_path: Path) -> list[Path]:
    return [tmp_path / "outputs"]


# Runs


def test_runs_are_listed_newest_first_and_each_once(keep: Keep, where: list[Path], tmp_path: Path) -> None:
    old, new = keep("aaaa"), keep("bbbb", group="shop--m")
    (tmp_path / "outputs" / "evals" / "echo--m" / "no-run").mkdir()

    assert run_folders([*where, tmp_path / "nowhere", *where]) == [new, old]


@pytest.mark.parametrize("inside", [".", "evals", "evals/echo--m"])
def test_a_place_may_be_named_anywhere_above_its_runs(keep: Keep, where: list[Path], inside: str) -> None:
    folder = keep("aaaa")

    assert [path.resolve() for path in run_folders([where[0] / inside])] == [folder]


def test_without_a_place_saved_and_journaled_runs_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "environments" / "my_env" / "outputs").mkdir(parents=True)

    saved, with_env, journaled = search_folders()

    assert (saved, with_env) == (Path("outputs"), Path("environments/my_env/outputs"))
    assert journaled.is_relative_to(tmp_path / "state")
    with pytest.raises(ConfigError, match="No folder 'gone'"):
        search_folders(["gone"])


def test_a_run_is_found_by_id_prefix_folder_file_or_as_the_latest(keep: Keep, where: list[Path]) -> None:
    one, other = keep("abc1"), keep("abd2")

    assert find_run("abc1", where) == one
    assert find_run("abd", where) == other
    assert find_run("latest", where) == other
    assert find_run(str(one), []) == one
    assert find_run(str(one / "results.jsonl"), []) == one


def test_a_whole_id_wins_over_one_that_it_begins(keep: Keep, where: list[Path]) -> None:
    short = keep("ab")
    keep("abcd")

    assert find_run("ab", where) == short


def test_who_is_meant_is_asked_in_one_sentence(keep: Keep, where: list[Path]) -> None:
    keep("abc1"), keep("abd2")

    with pytest.raises(ConfigError, match="2 runs begin with 'ab': abd2, abc1; give more of it"):
        find_run("ab", where)
    with pytest.raises(ConfigError, match=r"No run 'x' in .*outputs; `proctor jobs` lists"):
        find_run("x", where)
    with pytest.raises(ConfigError, match="No runs in"):
        find_run("latest", [where[0] / "evals" / "none"])
    with pytest.raises(ConfigError, match="No runs in a, b or c;"):
        find_run("latest", [Path(name) for name in "abc"])
    with pytest.raises(ConfigError, match="No runs in a, b or 3 other folders;"):
        find_run("latest", [Path(name) for name in "abcde"])
    keep("abc1", group="shop--m")
    with pytest.raises(ConfigError, match=r"shop--m/abc1, .*echo--m/abc1"):
        find_run("abc1", where)


def test_a_run_tells_what_its_metadata_says(keep: Keep) -> None:
    reward = {
        "mean": 0.5,
        "se": 0.1,
        "interval": {"low": 0.3, "high": 0.7, "kind": "t", "level": 0.95},
        "n": 9,
    }

    run = read_run(keep("aaaa", name="mine", label="a=1", settled=8, planned=9, summary={"reward": reward}))

    assert (run.id, run.env, run.label, run.status) == ("aaaa", "mine", "a=1", "finished")
    assert (run.settled, run.planned, run.started_at) == (8, 9, 1767323045.0)
    assert run.reward is not None
    assert run.reward.interval is not None
    assert run.reward.interval.high == 0.7


def test_damage_is_told_and_hides_no_other_run(keep: Keep, where: list[Path]) -> None:
    keep("good")
    cut, missing, odd = keep("cut"), keep("missing"), keep("odd", planned="many")
    (cut / "metadata.json").write_text('{"env_id": ')
    (missing / "metadata.json").unlink()
    keep("summed", summary={"reward": "high"})

    runs = {run.id: run for run in map(read_run, run_folders(where))}

    assert {name: run.status for name, run in runs.items()} == {
        "good": "finished",
        "cut": "damaged",
        "missing": "damaged",
        "odd": "damaged",
        "summed": "finished",
    }
    assert runs["cut"].note == "metadata.json is damaged: Input data was truncated"
    assert runs["missing"].note == "metadata.json cannot be read (No such file or directory)"
    assert "planned" in runs[odd.name].note


def test_a_run_whose_process_died_is_told_from_one_that_goes_on(keep: Keep) -> None:
    folder = keep("aaaa", status="running")
    assert read_run(folder).status == "interrupted"

    writer = RunFolder(folder)
    assert read_run(folder).status == "running"
    writer.close()


# Rollouts


def rewards(found: list[Brief]) -> list[float | None]:
    return [brief.reward for brief in found]


def test_rollouts_are_told_in_short_in_the_order_they_ended(keep: Keep, made: Made) -> None:
    answered = ModelCall("agent", "m", (), {}, 1.0, reply=Reply({"role": "assistant", "content": "hi"}))
    refused = ModelCall("agent", "m", (), {}, 1.0, failure=BUSY)
    judge = ModelCall("judge", "j", (), {}, 1.0, reply=Reply({"role": "assistant", "content": "yes"}))
    trace = Trace(calls=[refused, answered, judge])
    folder = keep("aaaa", [made("x/y", 1, trace=trace, usage=Usage(10, 5)), made(2, failure=BUSY)])

    counted = RolloutCounts()
    first, second = list_briefs(folder, counted)

    assert (first.trace, first.reward, first.turns, first.tokens, first.seconds) == (
        "aaaa/x/y/1",
        1,
        1,
        15,
        2.5,
    )
    assert second.error is not None
    assert (second.outcome, second.error.message) == ("model_error", "busy")
    assert counted.outcomes == {"scored": 1, "model_error": 1}


def test_the_worst_slowest_and_longest_come_first(keep: Keep, made: Made) -> None:
    scored = [made(n, score=Score(reward), usage=Usage(n)) for n, reward in enumerate([0.5, 0.0, 1.0])]
    folder = keep("aaaa", [*scored, made(9, failure=BUSY)])

    def listed(**asked: Any) -> list[float | None]:
        return rewards(list(list_briefs(folder, RolloutCounts(), **asked)))

    assert listed(sort="reward") == [0.0, 0.5, 1.0, None]
    assert listed(sort="reward", most=2) == [0.0, 0.5]
    assert listed(sort="tokens", most=1) == [1.0]
    assert listed(failed=True) == [None]


def test_what_is_not_shown_or_cannot_be_read_is_counted(keep: Keep, made: Made) -> None:
    folder = keep("aaaa", [made(0), made(1), made(2)])
    with (folder / "results.jsonl").open("ab") as file:
        file.write(b'{"example_id": 7}\n\xff\n{"example_id": 8, "rol')

    counted = RolloutCounts()
    assert len(list(list_briefs(folder, counted, most=1))) == 1
    assert (counted.rollouts, counted.matching, counted.unreadable) == (3, 3, 2)


def test_a_large_run_is_not_held_in_memory(keep: Keep, made: Made) -> None:
    row = encode_row(made(0, columns={"ballast": "x" * 10_000}))
    folder = keep("aaaa")
    (folder / "results.jsonl").write_bytes(row * 3_000)

    tracemalloc.start()
    try:
        assert sum(1 for _ in list_briefs(folder, RolloutCounts(), sort="time", most=5)) == 5
        assert find_failure("aaaa/1/0", [folder.parent.parent.parent]) is not None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000 < 3_000 * len(row)


def find_failure(word: str, where: list[Path]) -> str:
    with pytest.raises(ConfigError) as caught:
        find_trace(word, where)
    return str(caught.value)


@pytest.mark.parametrize(
    ("word", "task", "number"),
    [
        ("aaaa/1/0", 1, 0),
        ("aa/2/1", 2, 1),
        ("latest/1", 1, 0),
        ("aa/set/3/0", "set/3", 0),
        ("aa/set/3", "set/3", 0),
        ("aa/a/0", "a", 0),
        ("aa/a/0/0", "a/0", 0),
    ],
)
def test_a_rollout_is_named_by_run_task_and_number(
    keep: Keep, made: Made, where: list[Path], word: str, task: int | str, number: int
) -> None:
    keep("aaaa", [made(1), made(2), made(2, 1), made("set/3"), made("a"), made("a/0")])

    row = find_trace(word, where).row

    assert (row["example_id"], row["rollout"]) == (task, number)


def test_a_run_may_be_named_by_its_path(keep: Keep, made: Made) -> None:
    folder = keep("aaaa", [made("set/3")])

    assert find_trace(f"{folder}/set/3/0", []).id == "aaaa/set/3/0"
    assert find_trace(str(folder), []).id == "aaaa/set/3/0", "there is only one"


def test_a_rollout_that_is_not_there_is_missed_in_one_sentence(
    keep: Keep, made: Made, where: list[Path]
) -> None:
    keep("aaaa", [made(2), made(2, 1)])
    keep("empty")

    assert find_failure("aaaa/2", where) == (
        "Task 2 has 2 rollouts in run aaaa: 0, 1; add the number of one, as in aaaa/2/0."
    )
    assert find_failure("aaaa/2/7", where) == (
        "Run aaaa has no rollout '2/7' among its 2; `proctor jobs aaaa` lists them."
    )
    assert find_failure("aaaa", where) == (
        "Run aaaa has 2 rollouts; name one as `proctor jobs aaaa` lists them."
    )
    assert find_failure("empty/1", where).startswith("Run empty has no rollout that can be read")


def test_of_two_rows_of_one_rollout_the_settled_one_counts(keep: Keep, made: Made, where: list[Path]) -> None:
    keep("aaaa", [made(1, failure=BUSY), made(1), made(1, failure=BUSY)])

    assert find_trace("aaaa/1/0", where).row["outcome"] == "scored"
