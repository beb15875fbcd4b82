"""Grade by a command: it passes if its exit code is 0.

It runs in a folder and a process group of its own, with a deadline, and sees none of our environment
variables but the few below: an answer that is run must not find anybody's keys. That keeps out mishaps, not
an attacker. Knows nothing of what it runs.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from proctor.errors import GraderError
from proctor.rollout import Subscore

PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER", "LOGNAME", "VIRTUAL_ENV")
KEPT_BYTES = 4_000
CHUNK_BYTES = 65_536
CANNOT_RUN = (126, 127)
"""What a shell exits with when there is no such command, or none that may be run."""


async def shell(
    command: str | Sequence[str],
    *,
    cwd: str | Path,
    timeout_seconds: float = 60.0,
    env: Mapping[str, str] | None = None,
    name: str = "shell",
    weight: float = 1.0,
) -> Subscore:
    """1.0 if the command ends with exit code 0 in time; the end of what it printed is the note.

    A text is run by `sh`, a list as it is. A command that cannot be run at all is a GraderError.
    """
    environ = {**{key: os.environ[key] for key in PASSED_ON if key in os.environ}, **(env or {})}
    words = ["sh", "-c", command] if isinstance(command, str) else list(command)
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=cwd,
            env=environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise GraderError(f"{words[0]!r} cannot be run in {str(cwd)!r}: {error}") from error
    code, output = await watched(process, timeout_seconds)
    if code in CANNOT_RUN:
        raise GraderError(f"{name}: the command cannot be run (exit code {code}): {output}")
    said = f"exit code {code}" if code is not None else f"ended after {timeout_seconds:g} s"
    return Subscore(name, float(code == 0), weight, f"{said}\n{output}".strip())


async def watched(process: asyncio.subprocess.Process, timeout_seconds: float) -> tuple[int | None, str]:
    """The exit code, None if it took too long, and the end of the output. Nothing of the group is left."""
    assert process.stdout is not None
    reading = asyncio.create_task(tail(process.stdout))
    code: int | None = None
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                code = await process.wait()
    finally:
        end_group(process.pid)
        try:
            await process.wait()
        finally:
            output = await reading
    return code, output


async def tail(stream: asyncio.StreamReader) -> str:
    """The last of what a stream gives; everything before is read and dropped, or the writer would wait."""
    kept = b""
    while chunk := await stream.read(CHUNK_BYTES):
        kept = (kept + chunk)[-KEPT_BYTES:]
    return kept.decode(errors="replace").strip()


def end_group(leader: int) -> None:
    """End whatever the command left behind, too: it would hold the pipe open, and the machine busy."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
