"""Entries of rollouts that nobody played."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from proctor.reading.entries import EntryRecord
from proctor.reading.rollout_index import RolloutIndex

TASKS = st.one_of(st.integers(-3, 12), st.sampled_from(["a", "b/c", "ünï", "10", "9"]))
FAILED = ("model_error", "timeout", "environment_error")


def record(task: int | str = 0, number: int = 0, **fields: Any) -> EntryRecord:
    given = {"outcome": "scored", "reward": 1.0, **fields}
    return EntryRecord(task=task, number=number, **given)


@st.composite
def records(draw: st.DrawFn) -> EntryRecord:
    """A rollout, scored or failed, with values that often coincide."""
    is_failed = draw(st.booleans())
    return record(
        draw(TASKS),
        draw(st.integers(0, 3)),
        outcome=draw(st.sampled_from(FAILED)) if is_failed else "scored",
        reward=None if is_failed else draw(st.sampled_from([0.0, 0.5, 1.0, -2.0])),
        seconds=draw(st.sampled_from([0.0, 1.5, 30.0])),
        input_tokens=draw(st.integers(0, 3)),
        cost_usd=draw(st.sampled_from([None, 0.0, 0.25])),
        metrics=draw(st.sampled_from([{}, {"style": 0.5}, {"length": 3.0, "style": 0.1}])),
        error_kind=draw(st.sampled_from(["RateLimitError", "AuthError"])) if is_failed else "",
        error="Too Many requests" if is_failed else "",
        env=draw(st.sampled_from(["", "first", "second"])),
        preview=draw(st.sampled_from(["", "The answer", "ÄRGER over there"])),
    )


def indexed(found: list[EntryRecord]) -> RolloutIndex:
    index = RolloutIndex()
    for each in found:
        index.add(each)
    return index
