"""Kill a run with `kill -9` once it has written rows, and look whether its processes are gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.waiting import wait_for

SECONDS = 600
"""Generous: a first run may install packages."""


def kill_run(words: Sequence[str], cwd: Path, variables: Mapping[str, str], out: Path, rows: int) -> Path:
    """Start `proctor WORDS`, kill it after so many rows, and wait for all its processes; the run's folder."""
    run = subprocess.Popen(
        [sys.executable, "-m", "proctor", *words],
        cwd=cwd,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        folder = wait_for_rows(out, rows)
        processes = list_descendants(run.pid)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait(30)
    assert processes, "it was played in a process of its own"
    wait_for(lambda: not any(is_running(each) for each in processes))
    return folder


def wait_for_rows(folder: Path, count: int) -> Path:
    def written() -> list[Path]:
        files = folder.rglob("results.jsonl")
        return [file for file in files if file.read_bytes().count(b"\n") >= count]

    wait_for(lambda: bool(written()), SECONDS)
    return written()[0].parent


def list_descendants(pid: int) -> list[int]:
    """The processes that a process started, with theirs."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(process.name)] = int(fields[1])
    found = [pid]
    for each in found:
        found.extend(child for child, parent in parents.items() if parent == each)
    return found[1:]


def is_running(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
