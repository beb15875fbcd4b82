"""A run's folder: results.jsonl, appended as rollouts finish, and metadata.json, replaced whole.

What was appended survives the process, and a crash at any byte leaves a file that loads. One process at a
time may write to a folder. Knows nothing of engines or terminals.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import StoreError
from proctor.report.lines import RolloutLine
from proctor.rollout import RolloutKey
from proctor.store.rows import to_json_value
from proctor.support.regular_files import open_regular, read_regular
from proctor.trace import ToolSpec

RESULTS = "results.jsonl"
METADATA = "metadata.json"
SUPERSEDED = "superseded.jsonl"
UNFINISHED = ".new-"
READ_AT_ONCE = 2**18
"""Bytes: the default of 8 kB takes twice as long to read 100,000 rows."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decode_line = msgspec.json.Decoder(RolloutLine).decode


class RunFolder:
    """A folder open for writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tools: Sequence[ToolSpec] = ()
        """Tools that rows need not repeat, because the metadata says them."""
        self._unsaved: list[bytes] = []
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path / RESULTS, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise StoreError(f"Cannot write results to {path}: {error.strerror}.") from error
        self._lock()
        self._size = os.fstat(self._file).st_size

    def append(self, rows: Sequence[bytes]) -> None:
        """Make rows durable. Rows that cannot be written are kept and retried with the next batch."""
        self._unsaved += rows
        data = self._unsaved[0] if len(self._unsaved) == 1 else b"".join(self._unsaved)
        try:
            self._write(data)
        except OSError as error:
            raise StoreError(
                f"Cannot write to {self.path / RESULTS}: {error.strerror}. {len(self._unsaved)} finished "
                f"rollouts are not saved; free some space, then continue with --resume {self.path}"
            ) from error
        self._unsaved.clear()

    def save_metadata(self, metadata: Any) -> None:
        try:
            document = msgspec.json.encode(metadata, enc_hook=str)
        except Exception:
            document = msgspec.json.encode(to_json_value(metadata))
        replace_file(self.path / METADATA, msgspec.json.format(document))

    def close(self) -> None:
        if self._file < 0:
            return
        try:
            if self._unsaved:
                self.append(())
            os.fsync(self._file)
        except (StoreError, OSError):
            pass  # reported when it first failed
        finally:
            os.close(self._file)
            self._file = -1

    def _write(self, data: bytes) -> None:
        """All of it or nothing: a row cut off by a full disk is taken back."""
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:] if written else data)
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += written

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # its writer may have replaced the file between our opening and our locking it
            is_ours = os.path.samestat(os.fstat(self._file), (self.path / RESULTS).stat())
        except OSError:
            is_ours = False
        if not is_ours:
            os.close(self._file)
            self._file = -1
            raise StoreError(f"Another process is writing to {self.path}; wait for it or stop it.")

    # Picking up where an earlier process stopped

    def load(self, see: Callable[[RolloutLine], None], owed_whole: int = 0) -> StoredRollouts:
        """Read the rows, repair what a crash left, and set aside what must be played again.

        Every settled rollout is shown to `see`. With `owed_whole` rollouts to a group, a group that lacks
        any of them is owed whole.
        """
        try:
            return self._load(see, owed_whole)
        except OSError as error:
            raise StoreError(f"Cannot pick up the results in {self.path}: {error.strerror}.") from error

    def _load(self, see: Callable[[RolloutLine], None], owed_whole: int) -> StoredRollouts:
        for leftover in self.path.glob(f"{UNFINISHED}*"):
            leftover.unlink(missing_ok=True)
        whole = self._whole_groups(owed_whole) if owed_whole else None
        settled: dict[RolloutKey, str] = {}
        owed: dict[RolloutKey, RolloutLine] = {}
        dropped: list[tuple[int, int]] = []
        faults = 0
        for start, end, line in self._scan():
            if line is None:
                faults += 1
                dropped.append((start, end))
                continue
            key = (line.example_id, line.rollout)
            if line.is_settled and key not in settled and (whole is None or key in whole):
                settled[key] = line.task_hash
                see(line)
            else:
                owed[key] = line
                dropped.append((start, end))
        owed = {**self._failed_before(), **owed}
        if dropped:
            self._keep_only(list_gaps(dropped, self._size))
        return StoredRollouts(
            settled, {key: line for key, line in owed.items() if key not in settled}, faults
        )

    def _failed_before(self) -> dict[RolloutKey, RolloutLine]:
        """Failed rollouts that an earlier process set aside, and perhaps did not live to play again."""
        try:
            with (self.path / SUPERSEDED).open("rb") as file:
                lines = [read_line(raw) for raw in file]
        except FileNotFoundError:
            return {}
        return {line.key: line for line in lines if line is not None and line.error is not None}

    def _whole_groups(self, size: int) -> set[RolloutKey]:
        settled = {line.key for _, _, line in self._scan() if line and line.is_settled}
        counts = Counter(task for task, _ in settled)
        return {key for key in settled if counts[key[0]] >= size}

    def _scan(self) -> Iterator[tuple[int, int, RolloutLine | None]]:
        """Every line with its place; None for one that cannot be read."""
        with open(self._file, "rb", READ_AT_ONCE, closefd=False) as file:
            file.seek(0)
            start = 0
            for raw in file:
                end = start + len(raw)
                yield start, end, read_line(raw)
                start = end

    def _keep_only(self, places: Sequence[tuple[int, int]]) -> None:
        """Rewrite the file without the other lines, which go to a file of their own."""
        if not places:
            self._set_aside(0, self._size)
            os.ftruncate(self._file, 0)
            self._size = 0
            return
        end_before = 0
        for start, end in places:
            self._set_aside(end_before, start)
            end_before = end
        self._set_aside(end_before, self._size)
        with open_replacement(self.path / RESULTS) as new:
            fcntl.flock(new, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with (
                mmap.mmap(self._file, 0, access=mmap.ACCESS_READ) as old,
                open(new, "wb", closefd=False) as file,
            ):
                for start, end in places:
                    file.write(old[start:end])
            kept = os.dup(new)  # the lock goes with it
        os.close(self._file)
        self._file = kept
        self._size = os.fstat(kept).st_size

    def _set_aside(self, start: int, end: int) -> None:
        """Keep the evidence of failed rollouts, though it no longer counts."""
        if end > start:
            with (self.path / SUPERSEDED).open("ab") as file:
                data = os.pread(self._file, end - start, start)
                file.write(data if data.endswith(b"\n") else data + b"\n")


class StoredRollouts(msgspec.Struct, frozen=True):
    """The contents of a folder when it was resumed."""

    settled: dict[RolloutKey, str]
    """Finished rollouts and the hash of the task each belongs to."""
    owed: dict[RolloutKey, RolloutLine]
    """Rollouts that ended in an error, or in a group that must be scored again as a whole."""
    faults: int
    """Lines that could not be read."""


def list_gaps(places: Sequence[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """The places of a file of this size that are not among these, which are in order."""
    ends = (0, *(end for _, end in places))
    starts = (*(start for start, _ in places), size)
    return [(end, start) for end, start in zip(ends, starts, strict=True) if end < start]


def read_line(raw: bytes) -> RolloutLine | None:
    if not raw.endswith(b"\n"):
        return None  # cut off: even if it parses as JSON, it may not be complete
    try:
        return _decode_line(raw)
    except UNREADABLE:
        return None


def read_metadata(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(read_regular(path / METADATA), type=dict[str, Any])
    except OSError as error:
        raise StoreError(f"{path} is not a run: {METADATA} cannot be read ({error.strerror}).") from error
    except UNREADABLE as error:
        raise StoreError(f"{path / METADATA} is damaged: {error}.") from error


def find_rescored_run(metadata: Mapping[str, Any]) -> str | None:
    """The id of the run whose rollouts this one scored again, if it is one of those."""
    origin = metadata.get("origin")
    if not isinstance(origin, Mapping) or origin.get("kind") != "rescore":
        return None
    source = origin.get("run_id")
    return source if isinstance(source, str) and source else None


def read_rows(path: Path, keys: Collection[RolloutKey]) -> dict[RolloutKey, dict[str, Any]]:
    """Whole rows of a few rollouts."""
    found: dict[RolloutKey, dict[str, Any]] = {}
    with os.fdopen(open_regular(path / RESULTS), "rb") as file:
        for raw in file:
            line = read_line(raw)
            if line is not None and line.key in keys:
                with suppress(*UNREADABLE):  # damaged where a report does not look
                    found[line.key] = msgspec.json.decode(raw)
    return found


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically: readers see the old content or the new, never a mix."""
    try:
        with open_replacement(path) as new, open(new, "wb", closefd=False) as file:
            file.write(data)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror}.") from error


@contextmanager
def open_replacement(path: Path) -> Iterator[int]:
    """A file that takes the place of another when it is complete, and leaves nothing behind when not."""
    name = path.parent / f"{UNFINISHED}{path.name}-{secrets.token_hex(4)}"
    handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
    try:
        yield handle
        os.fsync(handle)
        name.replace(path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
