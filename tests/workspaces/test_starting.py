"""What others on the machine see of a command, and what is left where its parent was killed."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from proctor.isolation.streams import Streams
from proctor.support.threads import Threads
from proctor.workspaces.folder import RolloutFolder
from proctor.workspaces.spec import WorkspaceSpec
from tests.waiting import SECONDS, wait_for

pytestmark = pytest.mark.usefixtures("sandboxes")

KILLED = Path(__file__).with_name("killed_while_starting.py")
ROUNDS = 60


def test_no_command_line_of_the_machine_shows_a_variable() -> None:
    asyncio.run(asyncio.wait_for(shows_no_variable(), SECONDS))


async def shows_no_variable() -> None:
    of_author, of_command = secrets.token_hex(16), secrets.token_hex(16)
    folder = RolloutFolder(WorkspaceSpec("seen", variables={"AUTHOR": of_author}), (), Threads())
    folder.make()
    streams = Streams(subprocess.PIPE, subprocess.PIPE, subprocess.DEVNULL)
    words = ["sh", "-c", "echo $AUTHOR $GIVEN; cat"]
    try:
        async with folder.start_command(words, streams, {"GIVEN": of_command}) as started:
            assert started.process.stdout is not None
            assert (await started.process.stdout.readline()).decode().split() == [of_author, of_command]
            shown = [line for _, line in command_lines()]
    finally:
        await folder.close()
    assert any("cat" in line for line in shown)
    assert not [line for line in shown if of_author in line or of_command in line]


def test_no_command_runs_whose_parent_was_killed_while_it_started(tmp_path: Path) -> None:
    mark = f"mark-{secrets.token_hex(8)}"
    try:
        subprocess.run([sys.executable, KILLED, tmp_path, mark, str(ROUNDS)], check=True, timeout=2 * SECONDS)
        wait_for(lambda: not running_with(mark))
    finally:
        for pid, line in command_lines():
            if mark in line:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def running_with(mark: str) -> list[str]:
    """All but bubblewrap's own processes: killed at the wrong moment, it may leave one that does nothing."""
    return [
        line for _, line in command_lines() if mark in line and not line.partition("\0")[0].endswith("bwrap")
    ]


def command_lines() -> Iterator[tuple[int, str]]:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield int(file.parent.name), file.read_text(errors="replace")
