"""From rows to entries: ours, those of other tools, and whatever a file may claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor.config.prices import Price
from proctor.errors import ModelTimeoutError
from proctor.models.scripted import Step
from proctor.reading.entries import cost_by_prices, pack_entry, read_entry, task_key, unpack_entry
from proctor.reading.foreign_rows import read_foreign_entry
from proctor.report.tally import Tally
from proctor.store.folder import UNREADABLE
from tests.reading.conftest import Play

VERIFIERS = {
    "example_id": 3,
    "prompt": [{"role": "user", "content": "What is 1 + 1?"}],
    "completion": [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": ['{"id": "call_0", "name": "add", "arguments": "{\\"x\\": 1}"}'],
        },
        {"role": "tool", "tool_call_id": "call_0", "content": "2"},
        {"role": "assistant", "content": "It is 2."},
    ],
    "answer": "2",
    "reward": 1.0,
    "error": None,
    "timing": {"start_time": 100.0, "generation": {"start": 0, "end": 2, "duration": 2}, "total": 2.5},
    "is_completed": True,
    "is_truncated": False,
    "stop_condition": "max_turns_reached",
    "metrics": {"correct": 1.0, "num_turns": 2.0},
    "token_usage": {"input_tokens": 11.0, "output_tokens": 7.0},
    "correct": 1.0,
}


def row(**fields: Any) -> bytes:
    return json.dumps({"example_id": 0, "rollout": 0, "outcome": "scored", "reward": 1.0, **fields}).encode()


def test_an_entry_tells_what_a_row_says(play: Play, outputs: Path) -> None:
    script = {
        "say 0": "say 0",
        "say 1": Step(text="It is\n  one"),
        "say 2": ModelTimeoutError("no answer"),
        "": "x",
    }
    folder = play(outputs, script, rollouts_per_example=1)

    found = [
        read_entry(raw).record for raw in (folder / "results.jsonl").read_bytes().splitlines(keepends=True)
    ]

    by_task = {record.task: record for record in found}
    assert (by_task[0].reward, by_task[0].turns, by_task[0].preview) == (1.0, 1, "say 0")
    assert by_task[1].preview == "It is one"
    assert (by_task[2].outcome, by_task[2].error_kind) == ("model_error", "ModelTimeoutError")
    assert "no answer" in by_task[2].error
    assert not by_task[2].settled
    assert by_task[0].metrics == {"repeats": 1.0}
    assert by_task[0].input_tokens > 0 < by_task[0].started_at


def test_an_entry_that_was_stored_beside_its_row_gives_the_same_report(play: Play, tmp_path: Path) -> None:
    script = {"say 1": Step(error="timeout"), "say 2": ["wrong", "say 2"]}
    raws = (play(tmp_path, script, max_retries=1) / "results.jsonl").read_bytes().splitlines()
    raws.append(
        row(
            example_id="judged",
            other_usage={"judge": {"input_tokens": 7}},
            earlier_attempts=[
                {"outcome": "model_error", "error": {"error": "E"}, "usage": {"input_tokens": 2}}
            ],
            attempts=2,
            cleanup_error={"error": "CleanupError", "message": "left\nbehind"},
            reused_replies={"m": {"calls": 1, "usage": {"output_tokens": 3}}},
            env="first",
            metrics={"style": 0.5},
            stop_condition="done",
        )
    )
    by_rows, by_entries = Tally(), Tally()
    for raw in raws:
        entry = read_entry(raw)
        stored = unpack_entry(pack_entry(entry))
        assert stored.record == msgspec.structs.replace(entry.record, cost_usd=None)
        by_rows.add(entry.line)
        by_entries.add(stored.line)

    how: dict[str, Any] = {"planned": 10, "rollouts_per_task": 2, "model": "m", "prices": {"m": Price(1, 2)}}
    assert by_entries.summary(**how) == by_rows.summary(**how)


def test_a_key_stands_for_a_task_whatever_its_id() -> None:
    assert task_key(1) != task_key("1")
    assert task_key("a/b#c?") == task_key("a/b#c?")
    assert len(task_key("x" * 1000)) == 16


def test_a_rollout_costs_its_own_tokens_its_earlier_attempts_and_its_judges() -> None:
    usage = {"input_tokens": 1_000_000}
    attempt = {"outcome": "model_error", "error": {"error": "ModelError"}, "usage": usage}
    raw = row(token_usage=usage, earlier_attempts=[attempt], other_usage={"judge": usage, "unknown": usage})
    prices = {"model": Price(1.0, 0.0), "judge": Price(0.5, 0.0)}

    assert read_entry(raw, cost_by_prices("model", prices.get)).record.cost_usd == 2.5
    assert read_entry(raw, cost_by_prices("other", prices.get)).record.cost_usd is None


def test_rows_of_verifiers_are_read() -> None:
    record = read_foreign_entry(json.dumps(VERIFIERS).encode(), 1, lambda _: 5, None).record

    assert (record.task, record.number, record.outcome, record.reward) == (3, 5, "scored", 1.0)
    assert (record.turns, record.preview, record.seconds) == (2, "It is 2.", 2.5)
    assert (record.input_tokens, record.output_tokens) == (11, 7)
    assert record.metrics == {"correct": 1.0, "num_turns": 2.0}


def test_an_error_of_another_tool_is_a_failure_and_never_a_zero() -> None:
    error = {"error": "ModelError", "message": "400", "error_chain_str": "ModelError -> BadRequestError"}

    record = read_foreign_entry(
        json.dumps({**VERIFIERS, "reward": 0.0, "error": error}).encode(), 1, lambda _: 0, None
    ).record

    assert (record.outcome, record.reward, record.error_kind) == ("model_error", None, "ModelError")


@pytest.mark.parametrize(
    "fields",
    [
        {"completion": "a text"},
        {"completion": [None, 3, "x", [], {"role": None, "content": {"deep": [1]}}]},
        {"completion": [{"role": "assistant", "content": [{"type": "text", "text": None}, 7]}]},
        {"completion": {"role": "assistant"}},
        {"metrics": {f"metric {n}": 1.0 for n in range(1_000)}},
        {"metrics": {"huge": 1e300}},
        {"reward": 1e300},
        {"timing": {"total": 1e300, "start_time": -1e300}},
        {"token_usage": {"input_tokens": 10**30, "output_tokens": -5}},
        {"error": {"error": "x" * 100_000, "message": "\x00\x1b[31m\u202e" * 1_000}},
        {"stop_condition": "\n" * 1_000, "env": ["not", "a", "name"], "attempts": -3},
        {"example_id": "\u0000/../\u202e" + "x" * 100_000},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_row_may_claim_anything_and_its_entry_stays_small(fields: dict[str, Any]) -> None:
    entry = read_entry(row(**fields))
    record = msgspec.structs.replace(entry.record, task=0)

    assert len(pack_entry(msgspec.structs.replace(entry, record=record))) < 40_000
    assert record.seconds >= 0
    assert "\n" not in record.error + record.preview + record.stop_condition


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"example_id": 1', b"[" * 100_000])
def test_what_is_no_row_is_refused_by_both_readers(raw: bytes) -> None:
    with pytest.raises(UNREADABLE):
        read_entry(raw)
    with pytest.raises(UNREADABLE):
        read_foreign_entry(raw, 1, lambda _: 0, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"example_id": 1.5},
        {"example_id": None, "prompt": 3, "completion": {"a": 1}},
        {"rollout": -1},
        {"rollout": 10**40},
        {"outcome": "splendid", "reward": "1.0"},
        {"timing": [], "metrics": 3, "token_usage": "many", "error": 17, "tool_defs": "none"},
        {"model_calls": "none", "subscores": 1, "file_changes": {}},
    ],
    ids=str,
)
def test_a_strange_row_of_another_tool_still_has_an_entry(fields: dict[str, Any]) -> None:
    raw = row(**fields)
    with pytest.raises(UNREADABLE):
        read_entry(raw)

    record = read_foreign_entry(raw, 7, lambda _: 2, None).record

    assert record.number in (0, 2)
    assert record.outcome in ("scored", "excluded", "environment_error")
