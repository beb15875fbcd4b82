"""A run in a folder that is being played: its rows and its log grow when a test says so."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

ALREADY = 10


class LiveRun:
    """Holds the lock that the engine holds while it plays."""

    def __init__(self, folder: Path, waiting: list[bytes], results: BinaryIO) -> None:
        self.folder = folder
        self._waiting = waiting
        self._results = results
        self.played = ALREADY

    @classmethod
    @contextmanager
    def copy_of(cls, source: Path, name: str) -> Iterator[LiveRun]:
        """A run with the first rollouts of another one; the others wait to be played."""
        folder = source.parent / name
        shutil.copytree(source, folder)
        metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        metadata |= {"run_id": name, "status": "running", "settled": ALREADY}
        metadata.pop("summary", None)
        (folder / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
        rows = (folder / "results.jsonl").read_bytes().splitlines(keepends=True)
        with (folder / "results.jsonl").open("wb", buffering=0) as results:
            fcntl.flock(results, fcntl.LOCK_EX)
            results.write(b"".join(rows[:ALREADY]))
            yield cls(folder, rows[ALREADY:], results)

    def play(self, rollouts: int) -> None:
        for _ in range(rollouts):
            self._results.write(self._waiting.pop(0))
        self.played += rollouts

    def log(self, text: str, level: str = "INFO") -> None:
        with (self.folder / "run.log").open("a", encoding="utf-8") as file:
            file.write(f"2026-11-16T22:00:00Z {level} {text}\n")
