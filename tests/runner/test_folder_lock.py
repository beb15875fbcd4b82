"""Folders are held by one process at a time; what a killed one has held can be taken, or removed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from proctor.errors import InfraError
from proctor.runner.folder_lock import hold_folder, remove_unlocked, temporary_files_in_one_folder, try_lock

HOLDER = """
import sys, tempfile, time
from proctor.runner.folder_lock import temporary_files_in_one_folder
with temporary_files_in_one_folder("held-"):
    print(tempfile.mkdtemp(), flush=True)
    time.sleep(60)
"""


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    first = try_lock(tmp_path)
    assert first is not None
    assert try_lock(tmp_path) is None
    remove_unlocked(tmp_path)
    assert tmp_path.exists()
    os.close(first)
    remove_unlocked(tmp_path)
    assert not tmp_path.exists()


async def second_of_two(folder: Path, seconds: float) -> None:
    async with hold_folder(folder, seconds), hold_folder(folder, seconds):
        raise AssertionError("both hold it")


def test_who_waits_in_vain_is_told_that_another_is_there(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="does not end"):
        asyncio.run(second_of_two(tmp_path / "run-1", 0.2))


def test_temporary_files_of_a_killed_process_are_removed_by_the_next_and_not_those_of_a_living_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (killed, left), (living, kept) = start(), start()
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert left.exists()
        with temporary_files_in_one_folder("held-"):
            assert not left.exists()
            assert kept.exists()
            assert Path(tempfile.mkdtemp()).parent.parent == tmp_path
        assert list(tmp_path.iterdir()) == [kept.parent]
    finally:
        living.kill()
        for process in (killed, living):
            process.communicate()
