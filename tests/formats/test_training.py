"""`proctor eval export --format messages | preferences`: data to train on, from what a run recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.rollout import Rollout, Score, Span, Timing
from proctor.store.rows import encode_row
from proctor.task import Task
from proctor.trace import Message, Trace
from tests.cli.in_process import run_command

QUESTION = {"role": "user", "content": "2+2"}
NATIVE = {"by": "openai_chat_completions_token", "prompt_token_ids": [1, 2], "token_ids": [3, 4], "of": "x"}
CALLED: list[Message] = [
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "add", "arguments": "{}"}]},
    {"role": "tool", "tool_call_id": "1", "content": "4"},
    {"role": "assistant", "content": "it is 4"},
]
ADD = {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}


def played(
    task: int, number: int, reward: float, completion: list[Message], outcome: Any = "scored", **prompt: Any
) -> Rollout:
    asked = {**QUESTION, **prompt}
    return Rollout(
        task=Task(id=task, prompt=(asked,), answer="4"),
        number=number,
        outcome=outcome,
        trace=Trace(prompt=[asked], completion=completion, truncated=outcome == "truncated"),
        timing=Timing(Span(1.0, 1.5), Span(1.5, 3.0), Span(3.0, 3.25), 3.5),
        score=Score(reward, {}),
    )


def say(text: str, **fields: Any) -> list[Message]:
    return [{"role": "assistant", "content": text, **fields}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Task 0: three rollouts, one with tools. Task 1: all equal. Task 2: the best one was cut short."""
    rows = [
        played(0, 0, 1.0, CALLED),
        played(0, 1, 0.6, say("4?", native=NATIVE)),
        played(0, 2, 0.0, say("5", native=NATIVE)),
        played(1, 0, 0.0, say("5")),
        played(1, 1, 0.0, say("6")),
        played(2, 0, 1.0, say("4 and then"), outcome="truncated"),
        played(2, 1, 0.5, say("four")),
        played(2, 2, 0.2, say("five"), content="what is 2+2"),
    ]
    made = tmp_path / "run"
    made.mkdir()
    metadata = {"run_id": "1a2b", "env_id": "sums", "model": "m", "tools": [ADD]}
    (made / "metadata.json").write_text(json.dumps(metadata))
    (made / "results.jsonl").write_bytes(b"".join(map(encode_row, rows)) + b'{"broken\n')
    return made


def export(folder: Path, kind: str, *words: str) -> tuple[list[dict[str, Any]], str]:
    printed = run_command("eval", "export", str(folder), "--format", kind, *words)
    assert printed.code == 0, printed.err
    return [json.loads(line) for line in printed.out.splitlines()], printed.err


def test_conversations_of_rollouts_that_passed_are_written_as_a_trainer_reads_them(folder: Path) -> None:
    rows, err = export(folder, "messages")

    assert [(row["example_id"], row["rollout"], row["reward"]) for row in rows] == [
        (0, 0, 1.0),
        (0, 1, 0.6),
        (2, 1, 0.5),
    ], "what was cut short is no example to learn from"
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    assert rows[0]["messages"][:2] == [QUESTION, {"role": "assistant", "content": "", "tool_calls": [call]}]
    assert rows[0]["tools"] == [{"type": "function", "function": ADD}]
    assert "3 conversations from 2 tasks, 1 with token ids" in err
    assert "Left out 1 line" in err


def test_a_threshold_decides_what_is_good_enough(folder: Path) -> None:
    rows, _ = export(folder, "messages", "--min-reward", "0.7")

    assert [row["reward"] for row in rows] == [1.0]


def test_token_ids_are_written_where_every_answer_has_them_and_never_among_the_messages(folder: Path) -> None:
    rows, _ = export(folder, "messages")

    assert rows[1]["token_ids"] == [{"prompt": [1, 2], "completion": [3, 4]}]
    assert "token_ids" not in rows[0]
    assert "native" not in json.dumps(rows)


def test_a_pair_is_a_tasks_best_rollout_against_its_worst(folder: Path) -> None:
    rows, err = export(folder, "preferences")

    (pair,) = rows
    assert pair["prompt"] == [QUESTION]
    assert (pair["chosen"][-1]["content"], pair["rejected"]) == ("it is 4", say("5"))
    assert (pair["chosen_reward"], pair["rejected_reward"]) == (1.0, 0.0)
    assert (pair["chosen_rollout"], pair["rejected_rollout"]) == (0, 2)
    assert pair["rejected_token_ids"] == [{"prompt": [1, 2], "completion": [3, 4]}]
    assert "chosen_token_ids" not in pair
    assert "1 pair from 1 task" in err
    assert "different prompts" in err, "task 2 was asked in two ways"


def test_the_same_answer_is_not_both_better_and_worse(folder: Path) -> None:
    rows = [played(0, 0, 1.0, say("4")), played(0, 1, 0.0, say("4"))]
    (folder / "results.jsonl").write_bytes(b"".join(map(encode_row, rows)))

    pairs, err = export(folder, "preferences")

    assert pairs == []
    assert "Left out 1 pair whose rollouts gave the same answer." in err


def test_all_pairs_of_a_task_differ_by_the_least_gap(folder: Path) -> None:
    every, _ = export(folder, "preferences", "--all-pairs")
    wide, _ = export(folder, "preferences", "--all-pairs", "--min-gap", "0.5")

    assert [(row["chosen_reward"], row["rejected_reward"]) for row in every] == [
        (1.0, 0.0),
        (1.0, 0.6),
        (0.6, 0.0),
    ]
    assert [(row["chosen_reward"], row["rejected_reward"]) for row in wide] == [(1.0, 0.0), (0.6, 0.0)]


def test_a_file_is_written_whole_and_options_of_other_formats_are_refused(folder: Path, home: Path) -> None:
    done = run_command("eval", "export", str(folder), "--format", "messages", "-o", "train.jsonl")
    assert done.code == 0
    assert len((home / "train.jsonl").read_text().splitlines()) == 3
    for words, said in [
        (("--format", "csv", "--min-reward", "1"), "--min-reward is for"),
        (("--format", "messages", "--min-gap", "1"), "--format preferences"),
        (("--format", "messages", "--columns", "reward"), "takes no --columns"),
        (("--format", "preferences", "--min-gap", "-1"), "0 or more"),
        (("--format", "messages", "-o", "no/such/folder.jsonl"), "Cannot write"),
    ]:
        failed = run_command("eval", "export", str(folder), *words)
        assert failed.code in (1, 2)
        assert said in failed.err
