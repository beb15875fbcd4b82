"""Readers who share a server, and rows of strangers: nobody forges, hides or stalls what others read."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.api.field_problems import decode_query
from proctor.api.rollout_list import DistributionQuery, RolloutQuery
from proctor.api.rollout_view import EventQuery
from proctor.reading import event_window
from proctor.reading.distribution import compute_distribution
from proctor.reading.entries import EntryRecord, pack_entry, read_lenient_entry, unpack_entry
from proctor.reading.event_window import cut_list, cut_text
from proctor.reading.replays import ReplayCache
from proctor.reading.rollout_index import RolloutIndex
from proctor.reading.rollout_pages import list_rollouts
from proctor.report.limits import MOST_NAMES, OTHERS
from proctor.report.tally import Tally
from proctor.store.alignment import compare_rollouts
from tests.reading.records import indexed, record

SWITCHES = 64
"""Letters of a forged row that are chosen so that its checksum comes out right."""


def row(answer: str, note: str = "") -> bytes:
    messages = [{"role": "assistant", "content": answer}]
    fields = {"example_id": "a", "rollout": 0, "outcome": "scored", "reward": 1.0, "prompt": []}
    return msgspec.json.encode({**fields, "completion": messages, "info": {"note": note}})


def forge(victim: bytes, answer: str) -> bytes:
    """A row with another answer, and the length and the CRC-32 of the victim's: both are linear."""
    room = len(victim) - len(row(answer))
    plain = row(answer, "a" * room)
    start = plain.index(b"a" * SWITCHES, plain.index(b"note"))
    wanted = zlib.crc32(plain) ^ zlib.crc32(victim)
    basis: dict[int, tuple[int, int]] = {}
    for place in range(SWITCHES):
        changed = bytearray(plain)
        changed[start + place] ^= 2  # a becomes c
        effect, chosen = zlib.crc32(plain) ^ zlib.crc32(bytes(changed)), 1 << place
        while effect and effect.bit_length() in basis:
            known = basis[effect.bit_length()]
            effect, chosen = effect ^ known[0], chosen ^ known[1]
        if effect:
            basis[effect.bit_length()] = (effect, chosen)
    picked = 0
    while wanted:
        effect, chosen = basis[wanted.bit_length()]
        wanted, picked = wanted ^ effect, picked ^ chosen
    forged = bytearray(plain)
    for place in range(SWITCHES):
        forged[start + place] ^= 2 * (picked >> place & 1)
    return bytes(forged)


def test_a_forged_row_of_the_same_size_and_checksum_is_not_shown_for_another() -> None:
    honest = row("forty-two", "n" * 200)
    forged = forge(honest, "I refuse")
    assert (zlib.crc32(forged), len(forged)) == (zlib.crc32(honest), len(honest))
    replays = ReplayCache()

    def answer(raw: bytes) -> Any:
        return replays.decode(raw, "a", 0).messages[-1].text

    assert [answer(forged), answer(honest), answer(forged)] == ["I refuse", "forty-two", "I refuse"]


def test_a_row_that_two_tasks_have_is_shown_as_each_ones_own() -> None:
    foreign, replays = msgspec.json.encode({"reward": 1.0, "completion": "hello"}), ReplayCache()
    found = [replays.decode(foreign, task, number).row for task, number in (("a", 0), ("b", 1))]
    assert [(each.example_id, each.rollout) for each in found] == [("a", 0), ("b", 1)]


@pytest.mark.parametrize(
    ("name", "bound"),
    [("reward_min", "inf"), ("reward_min", "nan"), ("reward_max", "-inf"), ("tokens_min", str(10**30))],
)
def test_no_readers_filter_changes_what_another_reader_lists(name: str, bound: str) -> None:
    index = indexed([record(task) for task in range(3)])
    assert list_rollouts(index, decode_query([(name, bound)], RolloutQuery)).total == 0
    assert list_rollouts(index, RolloutQuery()).total == 3


def test_asking_for_any_number_of_metrics_takes_no_more_memory() -> None:
    index = indexed([record(task, metrics={"m": 1.0}) for task in range(3)])
    for number in range(100):
        compute_distribution(index, DistributionQuery(of="metric", metric=f"none {number}"))
        list_rollouts(index, RolloutQuery(sort="metric", metric=f"neither {number}"))

    def count(kept: Any) -> int:
        return sum(map(count, kept.values())) if isinstance(kept, dict) else 1

    assert count(index._cached) < 30
    assert compute_distribution(index, DistributionQuery(of="metric", metric="m")).n == 3


def test_kinds_of_errors_are_sorted_in_one_pass_however_many_there_are() -> None:
    class Text(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Text.compared += 1
            return str.__eq__(self, other)

    index = indexed(
        [record(task, outcome="model_error", reward=None, error_kind=f"E{task}") for task in range(300)]
    )
    index.error_kind.texts = [Text(text) for text in index.error_kind.texts]
    assert list_rollouts(index, RolloutQuery(sort="error")).total == 300
    assert Text.compared < 3_000


def hostile_row(number: int) -> bytes:
    """Every name that it can choose is one that no other row has."""
    return msgspec.json.encode(
        {
            "example_id": number,
            "rollout": 0,
            "outcome": "scored",
            "reward": 1.0,
            "stop_condition": f"stop {number}",
            "metrics": {f"metric {number} {each}": 1.0 for each in range(200)},
            "other_usage": {f"model {number} {each}": {"input_tokens": 1} for each in range(50)},
            "error": {"error": f"E{number}", "message": "no"},
        }
    )


def test_names_without_end_neither_grow_a_report_nor_an_index() -> None:
    tally, index = Tally(), RolloutIndex()
    rows = 600
    for number in range(rows):
        entry = unpack_entry(pack_entry(read_lenient_entry(hostile_row(number))))
        tally.add(entry.line)
        index.add(entry.record)
    summary = tally.summary(planned=rows, rollouts_per_task=1)

    assert len(summary.metrics) == len(index.metrics.names) == MOST_NAMES
    assert max(len(summary.other_usage), len(summary.stop_conditions), len(summary.errors)) == MOST_NAMES + 1
    assert sum(usage.input_tokens for usage in summary.other_usage.values()) == 50 * rows
    assert summary.stop_conditions[OTHERS] == rows - MOST_NAMES
    assert sum(group.count for group in summary.errors) == rows
    assert OTHERS in summary.unpriced_models
    assert list_rollouts(index, RolloutQuery(sort="metric", metric="metric 0 7")).total == rows


def test_the_metrics_of_a_task_that_lacks_some_are_the_same_mean() -> None:
    tally = Tally()
    for task, metrics in enumerate(({"m": 1.0}, {}, {"m": 0.0, "n": 1.0})):
        fields: dict[str, Any] = {
            "metrics": metrics,
            "task": task,
            "number": 0,
            "outcome": "scored",
            "reward": 1.0,
        }
        tally.add(unpack_entry(msgspec.msgpack.encode([EntryRecord(**fields)])).line)
    found = tally.summary(planned=3, rollouts_per_task=1).metrics
    assert {name: (each.mean, each.n) for name, each in found.items()} == {"m": (0.5, 2), "n": (1.0, 1)}


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(5, 120))
def test_a_list_is_cut_like_the_text_that_it_is(messages: list[str], most: int) -> None:
    pieces = [msgspec.json.encode(message).decode() for message in messages]
    assert cut_list(pieces, most) == cut_text(msgspec.json.encode(messages).decode(), most)


def test_a_window_of_calls_that_repeat_a_long_conversation_is_no_larger_than_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_window, "MOST_SENT", 100_000)
    call = {"role": "judge", "model": "j", "messages": 2, "reply": {"role": "assistant", "content": "yes"}}
    fields = msgspec.json.decode(row("no", "x" * 500_000))
    fields["prompt"] = [{"role": "user", "content": "x" * 500_000}]
    raw = msgspec.json.encode({**fields, "model_calls": [call] * 300})
    encoded: list[int] = []
    encode = event_window.encode_message

    def count(message: Any) -> str:
        encoded.append(1)
        return encode(message)

    monkeypatch.setattr(event_window, "encode_message", count)
    replay = ReplayCache().decode(raw, "a", 0)
    window = event_window.read_window(replay, EventQuery(count=500, most_characters=100_000_000))

    calls = [item.request for item in window.items if item.request is not None]
    assert len(calls) == 300
    assert (calls[0].omitted, len(calls[0].head) > 500_000) == (0, True), "one is shown whole if asked for"
    assert len(msgspec.json.encode(window)) < 3 * len(raw)
    assert len(encoded) == 2


def test_long_rollouts_of_few_kinds_of_messages_are_aligned_at_once() -> None:
    """Two of these took minutes, on every request for them."""

    def conversation(period: int) -> bytes:
        roles = ("user" if place % period else "assistant" for place in range(1_999))
        messages = [{"role": role, "content": f"{period} {place}"} for place, role in enumerate(roles)]
        return msgspec.json.encode({**msgspec.json.decode(row("")), "completion": messages})

    one, other = (ReplayCache().decode(conversation(period), "a", 0) for period in (2, 3))
    pairs = compare_rollouts(one, other).pairs
    for side, replay in (("a", one), ("b", other)):
        found = [message for pair in pairs if (message := getattr(pair, side)) is not None]
        assert [message.index for message in found] == [message.index for message in replay.messages]
    assert sum(pair.a is not None and pair.b is not None for pair in pairs) > 1_200
