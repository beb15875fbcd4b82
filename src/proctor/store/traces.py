"""Find rollouts in a run's results: all of them in short, one of them whole.

A trace is named RUN/TASK/NUMBER. Rows are read one by one, so that the size of a run does not matter. Knows
nothing of terminals.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import ConfigError, StoreError
from proctor.report.lines import ErrorLine, TimingLine
from proctor.rollout import Outcome, is_settled
from proctor.store.folder import RESULTS, UNREADABLE
from proctor.store.index import expand_path, find_run, is_run_folder, run_name
from proctor.support.regular_files import open_regular
from proctor.task import TaskId
from proctor.trace import Usage

SHOWN_NUMBERS = 8


class RowKey(msgspec.Struct, frozen=True):
    """Which rollout a row is of."""

    example_id: TaskId
    rollout: int
    outcome: Outcome
    reward: float | None = None

    @property
    def is_settled(self) -> bool:
        return is_settled(self.outcome, self.reward)


class CallLine(msgspec.Struct, frozen=True):
    role: str = ""
    finish_reason: str | None = None


class BriefLine(msgspec.Struct, frozen=True):
    """The part of a stored rollout that a list reads; field names are those of the file."""

    example_id: TaskId
    rollout: int
    outcome: Outcome
    reward: float | None = None
    token_usage: Usage = Usage()
    timing: TimingLine = TimingLine()
    error: ErrorLine | None = None
    attempts: int = 1
    model_calls: list[CallLine] = []


class Brief(msgspec.Struct, frozen=True):
    """One rollout in short. `proctor jobs ID --json` prints it as it is."""

    trace: str
    task: TaskId
    rollout: int
    outcome: Outcome
    reward: float | None
    turns: int
    """How often the evaluated model answered."""
    input_tokens: int
    output_tokens: int
    seconds: float
    attempts: int
    error: ErrorLine | None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class RolloutCounts:
    """What a list of rollouts was made from, counted while it is made."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.matching = 0
        self.unreadable = 0

    @property
    def rollouts(self) -> int:
        return self.outcomes.total()


class StoredTrace(msgspec.Struct, frozen=True):
    """One rollout as it is stored."""

    id: str
    folder: Path
    raw: bytes

    @property
    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = msgspec.json.decode(self.raw)
        return row


_decode_key = msgspec.json.Decoder(RowKey).decode
_decode_line = msgspec.json.Decoder(BriefLine).decode

SORT_KEYS: dict[str, Callable[[Brief], float]] = {
    "reward": lambda brief: math.inf if brief.reward is None else brief.reward,
    "time": lambda brief: -brief.seconds,
    "tokens": lambda brief: -brief.tokens,
}
"""The most interesting first: the worst, the slowest, the longest."""


# A run's rollouts


def list_briefs(
    folder: Path,
    counted: RolloutCounts,
    *,
    failed: bool = False,
    sort: str | None = None,
    most: int | None = None,
) -> Iterator[Brief]:
    """The first so many rollouts, as they ended or sorted; all of them are counted."""
    every = iterate_matching(folder, counted, failed)
    if sort is None:
        yield from itertools.islice(every, most)
        for _ in every:
            pass  # only to be counted
    elif most is None:
        yield from sorted(every, key=SORT_KEYS[sort])
    else:
        yield from heapq.nsmallest(most, every, key=SORT_KEYS[sort])


def iterate_matching(folder: Path, counted: RolloutCounts, failed: bool) -> Iterator[Brief]:
    run = run_name(folder)
    for raw in read_raw_lines(folder):
        try:
            line = _decode_line(raw)
        except UNREADABLE:
            counted.unreadable += 1
            continue
        counted.outcomes[line.outcome] += 1
        if not (failed and is_settled(line.outcome, line.reward)):
            counted.matching += 1
            yield brief_of(run, line)


def brief_of(run: str, line: BriefLine) -> Brief:
    answered = (call for call in line.model_calls if call.role == "agent" and call.finish_reason is not None)
    return Brief(
        format_trace_id(run, line.example_id, line.rollout),
        line.example_id,
        line.rollout,
        line.outcome,
        line.reward,
        sum(1 for _ in answered),
        line.token_usage.input_tokens,
        line.token_usage.output_tokens,
        line.timing.total,
        line.attempts,
        line.error,
    )


def read_raw_lines(folder: Path) -> Iterator[bytes]:
    """The lines of the results; one that is still being written is left out."""
    path = folder / RESULTS
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            for raw in file:
                if raw.endswith(b"\n"):
                    yield raw
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error


# One of them


def format_trace_id(run: str, task: TaskId, number: int) -> str:
    return f"{run}/{task}/{number}"


def find_trace(word: str, where: Sequence[Path]) -> StoredTrace:
    """The rollout that RUN/TASK/NUMBER names. The number may be left out where a task was played once, and
    the task where a run has only one rollout."""
    run, rest = split_trace_id(word)
    folder = find_run(run, where)
    return find_row(folder, rest)


def split_trace_id(word: str) -> tuple[str, str]:
    """The words for the run and for the rollout; a run may be named by a path, and a task have slashes."""
    places = [place for place, letter in enumerate(word) if letter == "/"]
    for place in places:
        if place and is_run_folder(expand_path(word[:place])):
            return word[:place], word[place + 1 :]
    if is_run_folder(expand_path(word)):
        return word, ""
    run, _, rest = word.partition("/")
    return run, rest


def find_row(folder: Path, rest: str) -> StoredTrace:
    task, _, number = rest.rpartition("/")
    exactly: dict[RowKey, bytes] = {}
    of_task: dict[RowKey, bytes] = {}
    rows = 0
    for key, raw in iterate_keyed_rows(folder):
        rows += 1
        if str(key.example_id) == task and str(key.rollout) == number:
            keep_settled_row(exactly, key, raw)
        elif str(key.example_id) == rest or (not rest and rows == 1):
            keep_settled_row(of_task, key, raw)
    found = exactly or of_task
    if not found or (not rest and rows > 1):
        raise ConfigError(describe_no_match(folder, rest, rows))
    if len(found) > 1:
        raise ConfigError(describe_several_matches(folder, rest, found))
    ((key, raw),) = found.items()
    return StoredTrace(format_trace_id(run_name(folder), key.example_id, key.rollout), folder, raw)


def iterate_keyed_rows(folder: Path) -> Iterator[tuple[RowKey, bytes]]:
    for raw in read_raw_lines(folder):
        with suppress(*UNREADABLE):
            yield _decode_key(raw), raw


def keep_settled_row(found: dict[RowKey, bytes], key: RowKey, raw: bytes) -> None:
    """Of two rows of one rollout the first that is settled counts, as when a run is resumed."""
    for known in found:
        if (known.example_id, known.rollout) == (key.example_id, key.rollout):
            if known.is_settled or not key.is_settled:
                return
            del found[known]
            break
    found[key] = raw


def describe_no_match(folder: Path, rest: str, rows: int) -> str:
    run = run_name(folder)
    if not rows:
        return f"Run {run} has no rollout that can be read in {folder / RESULTS}."
    if not rest:
        return f"Run {run} has {rows:,} rollouts; name one as `proctor jobs {run}` lists them."
    return f"Run {run} has no rollout {rest!r} among its {rows:,}; `proctor jobs {run}` lists them."


def describe_several_matches(folder: Path, rest: str, found: dict[RowKey, bytes]) -> str:
    numbers = sorted(key.rollout for key in found)
    shown = ", ".join(map(str, numbers[:SHOWN_NUMBERS])) + (" …" if len(numbers) > SHOWN_NUMBERS else "")
    run = run_name(folder)
    return (
        f"Task {rest} has {len(numbers):,} rollouts in run {run}: {shown}; add the number of one, as in "
        f"{run}/{rest}/{numbers[0]}."
    )
