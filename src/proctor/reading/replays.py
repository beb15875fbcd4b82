"""Rows decoded into replays, the last few of them kept: a long rollout is read in many windows.

They are kept by an unforgeable hash of their content, so that no user sees a rollout whose row they
could not read, or makes others see another. Knows nothing of stores.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock

from proctor.api.refusals import ApiError
from proctor.errors import StoreError
from proctor.reading.foreign_rows import decode_foreign_replay
from proctor.store.folder import UNREADABLE
from proctor.store.replay import RolloutReplay, decode_replay
from proctor.task import TaskId

KEPT_BYTES = 32 * 2**20
"""Of the rows whose replays are kept."""

ReplayName = tuple[bytes, TaskId, int, int]
"""The hash of a row, the task and the number it was found to be of, and its size."""


class UnreadableRowError(ApiError):
    status, code = 409, "unreadable_row"


class ReplayCache:
    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._size = 0
        self._replays: OrderedDict[ReplayName, RolloutReplay] = OrderedDict()
        self._lock = Lock()

    def decode(self, raw: bytes, task: TaskId, number: int) -> RolloutReplay:
        """The replay of a row, which an index found to be of this task and number."""
        name = (hashlib.sha256(raw).digest(), task, number, len(raw))
        with self._lock:
            known = self._replays.get(name)
            if known is not None:
                self._replays.move_to_end(name)
                return known
        replay = decode_row(raw, task, number)
        with self._lock:
            if name not in self._replays:
                self._replays[name] = replay
                self._size += len(raw)
            while self._size > self._kept_bytes and len(self._replays) > 1:
                (*_, size), _ = self._replays.popitem(last=False)
                self._size -= size
        return replay


def decode_row(raw: bytes, task: TaskId, number: int) -> RolloutReplay:
    try:
        return decode_replay(raw)
    except StoreError:
        pass  # perhaps another tool wrote it
    try:
        return decode_foreign_replay(raw, task, number)
    except UNREADABLE as error:
        raise UnreadableRowError(
            f"This rollout's row cannot be read: {error}. Its raw form shows it as it is stored."
        ) from error
