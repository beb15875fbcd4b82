"""People's scores of a run's rollouts: one line per label in labels.jsonl, beside the results.

Lines are only appended. Of several labels that one person gave a rollout, the last counts. Several people may
label at the same time. Knows nothing of terminals or of how labels are used.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from proctor.errors import StoreError
from proctor.rollout import RolloutKey, is_score
from proctor.store.folder import UNREADABLE
from proctor.store.recorded import StoredPlays
from proctor.support.regular_files import open_regular
from proctor.task import TaskId

LABELS = "labels.jsonl"
LONGEST_NAME = 100
LONGEST_NOTE = 10_000


class Label(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's score of one rollout."""

    example_id: TaskId
    rollout: int
    person: str
    score: float | None = None
    """None if the person skipped it."""
    note: str = ""
    at: float = 0.0
    """When, in seconds since the epoch."""

    @property
    def key(self) -> RolloutKey:
        return (self.example_id, self.rollout)


class RunLabels(msgspec.Struct, frozen=True):
    """The labels of a run that count."""

    by_person: Mapping[str, Mapping[RolloutKey, Label]]
    faults: int = 0
    """Lines that could not be read."""

    def of(self, person: str) -> Mapping[RolloutKey, Label]:
        return self.by_person.get(person, {})

    @property
    def scores(self) -> dict[str, dict[RolloutKey, float]]:
        """What each person scored, without what they skipped."""
        return {
            person: {key: label.score for key, label in given.items() if label.score is not None}
            for person, given in self.by_person.items()
        }

    @property
    def scored(self) -> int:
        return sum(map(len, self.scores.values()))


_decode_label = msgspec.json.Decoder(Label).decode


def read_labels(folder: Path) -> RunLabels:
    """The labels beside a run's results; empty if there are none."""
    found: dict[str, dict[RolloutKey, Label]] = {}
    faults = 0
    for raw in read_label_lines(folder):
        try:
            label = _decode_label(raw)
        except UNREADABLE:
            faults += 1
            continue
        if label.score is not None and not is_score(label.score):
            faults += 1
            continue
        found.setdefault(label.person, {})[label.key] = label
    return RunLabels(found, faults)


def read_label_lines(folder: Path) -> Iterator[bytes]:
    try:
        with os.fdopen(open_regular(folder / LABELS), "rb") as file:
            yield from file
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{folder / LABELS} cannot be read: {error.strerror}.") from error


def append_labels(folder: Path, labels: Iterable[Label]) -> None:
    """Make labels durable: all of them, or none if the disk is full."""
    data = b"".join(msgspec.json.encode(label) + b"\n" for label in labels)
    try:
        handle = os.open(folder / LABELS, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)  # held for one write only
            append_whole(handle, data)
        finally:
            os.close(handle)
    except OSError as error:
        raise StoreError(f"Cannot write to {folder / LABELS}: {error.strerror}.") from error


def append_whole(handle: int, data: bytes) -> None:
    """Append, after a line that a crash cut off too; what cannot be written whole is taken back."""
    size = os.fstat(handle).st_size
    if size and os.pread(handle, 1, size - 1) != b"\n":
        data = b"\n" + data
    written = 0
    try:
        while written < len(data):
            written += os.write(handle, data[written:])
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise


def list_for_labelling(plays: StoredPlays, seed: int) -> list[RolloutKey]:
    """The scored rollouts of a run in a random order, the same for everybody.

    Each rollout's place comes from a hash, so that rollouts which are added later do not change the order
    of the others.
    """
    return order_for_labelling((key for key, line in plays.lines.items() if line.reward is not None), seed)


def order_for_labelling(scored: Iterable[RolloutKey], seed: int) -> list[RolloutKey]:
    return sorted(scored, key=lambda key: hash_place(key, seed))


def hash_place(key: RolloutKey, seed: int) -> bytes:
    return hashlib.sha256(msgspec.json.encode((seed, *key))).digest()
