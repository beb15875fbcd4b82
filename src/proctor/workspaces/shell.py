"""Grade by a command: it passes if its exit code is 0.

It runs in a folder and a process group of its own, with a deadline, and sees none of our environment
variables but the few below: an answer that is executed must not find any keys. That protects against
accidents, not against an attacker. Knows nothing of what it runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.contracts import CommandResult
from proctor.errors import GraderError
from proctor.rollout import Subscore
from proctor.support.output import OutputBuffer, OutputPipe
from proctor.support.processes import end_group

PASSED_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "VIRTUAL_ENV",
)
KEPT_BYTES = 16_000
NOTE_CHARACTERS = 4_000
CANNOT_RUN = (126, 127)
"""A shell's exit codes for a command that does not exist or cannot be executed."""


async def shell(
    command: str | Sequence[str],
    *,
    cwd: str | Path,
    timeout_seconds: float = 60.0,
    env: Mapping[str, str] | None = None,
    name: str = "shell",
    weight: float = 1.0,
) -> Subscore:
    """1.0 if the command ends with exit code 0 in time; the end of its output is the note.

    A text is run by `sh`, a list as it is. A command that cannot be run at all is a GraderError.
    """
    environ = {**{key: os.environ[key] for key in PASSED_VARIABLES if key in os.environ}, **(env or {})}
    words = ["sh", "-c", command] if isinstance(command, str) else list(command)
    try:
        ran = await run_with_timeout(words, cwd, environ, timeout_seconds)
    except (OSError, ValueError) as error:
        raise GraderError(f"{words[0]!r} cannot be run in {str(cwd)!r}: {error}") from error
    return score_command(name, weight, ran, timeout_seconds)


def score_command(name: str, weight: float, ran: CommandResult, seconds: float) -> Subscore:
    """The score of a command that ran within this many seconds; the end of its output is the note."""
    output = ran.output[-NOTE_CHARACTERS:].strip()
    if ran.code in CANNOT_RUN:
        raise GraderError(f"{name}: the command cannot be run (exit code {ran.code}): {output}")
    said = f"exit code {ran.code}" if ran.code is not None else f"ended after {seconds:g} s"
    return Subscore(name, float(ran.code == 0), weight, f"{said}\n{output}".strip())


async def run_with_timeout(
    words: Sequence[str], cwd: str | Path, environ: Mapping[str, str], timeout_seconds: float
) -> CommandResult:
    """Run a command until it ends or times out. Nothing of the process group is left."""
    async with OutputPipe.open(OutputBuffer(head_bytes=0, tail_bytes=KEPT_BYTES)) as output:
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                cwd=cwd,
                env=environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output.pipe,
                stderr=output.pipe,
                start_new_session=True,
            )
        finally:
            output.close_pipe()
        code = await wait_for_exit(process, timeout_seconds)
        return CommandResult(code, await output.text())


async def wait_for_exit(process: asyncio.subprocess.Process, timeout_seconds: float) -> int | None:
    try:
        async with asyncio.timeout(timeout_seconds):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        end_group(process.pid)  # leftovers would keep the machine busy
        await process.wait()
