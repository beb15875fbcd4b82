"""Grade by a command: it passes if its exit code is 0.

It runs in a folder and a process group of its own, with a deadline, and sees none of our environment
variables but the few below: an answer that is run must not find anybody's keys. That keeps out mishaps, not
an attacker. Knows nothing of what it runs.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from proctor.errors import GraderError
from proctor.rollout import Subscore

PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER", "LOGNAME", "VIRTUAL_ENV")
KEPT_BYTES = 4_000
CHUNK_BYTES = 65_536
READING_SECONDS = 5.0
"""How long the output is waited for afterwards: a child that left the group may hold on to it."""
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
        code, output = await run_watched(words, cwd, environ, timeout_seconds)
    except (OSError, ValueError) as error:
        raise GraderError(f"{words[0]!r} cannot be run in {str(cwd)!r}: {error}") from error
    if code in CANNOT_RUN:
        raise GraderError(f"{name}: the command cannot be run (exit code {code}): {output}")
    said = f"exit code {code}" if code is not None else f"ended after {timeout_seconds:g} s"
    return Subscore(name, float(code == 0), weight, f"{said}\n{output}".strip())


async def run_watched(
    words: Sequence[str], cwd: str | Path, environ: Mapping[str, str], timeout_seconds: float
) -> tuple[int | None, str]:
    """The exit code, None if it took too long, and the end of the output. Nothing of the group is left."""
    async with printing() as (pipe, last_lines):
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                cwd=cwd,
                env=environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
            )
        finally:
            os.close(pipe)
        code = await exit_code(process, timeout_seconds)
        await asyncio.wait({last_lines}, timeout=READING_SECONDS)
        return code, last_lines.result() if last_lines.done() else ""


async def exit_code(process: asyncio.subprocess.Process, timeout_seconds: float) -> int | None:
    try:
        async with asyncio.timeout(timeout_seconds):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        end_group(process.pid)
        await process.wait()


@asynccontextmanager
async def printing(kept_bytes: int = KEPT_BYTES) -> AsyncIterator[tuple[int, asyncio.Task[str]]]:
    """A pipe to print into, and the end of what comes out of it. Not asyncio's own: with that, a process
    counts as running for as long as anybody holds its pipe."""
    ours, theirs = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb")
    )
    reading = asyncio.create_task(tail(reader, kept_bytes))
    try:
        yield theirs, reading
    finally:
        reading.cancel()
        transport.close()


async def tail(stream: asyncio.StreamReader, kept_bytes: int) -> str:
    """The last of what a stream gives; everything before is read and dropped, or the writer would wait."""
    kept = b""
    while chunk := await stream.read(CHUNK_BYTES):
        kept = (kept + chunk)[-kept_bytes:]
    return kept.decode(errors="replace").strip()


def end_group(leader: int) -> None:
    """End whatever the command left behind, too: it would hold the pipe open, and the machine busy."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
