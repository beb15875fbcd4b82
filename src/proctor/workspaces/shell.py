"""Grade by a command: it passes if its exit code is 0 and, where that is given, it prints what is expected.

It runs in a folder and a process group of its own, with a deadline, and sees none of our environment
variables but the few below: an answer that is executed must not find any keys. That protects against
accidents, not against an attacker. Knows nothing of what it runs.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
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
"""A shell's exit codes for a command that does not exist or cannot be executed; any program may use them."""
PROGRAM = re.compile(r"[\w.+/-]+")
"""A first word without shell syntax."""

Expected = str | re.Pattern[str]
"""What a command must print: exactly this text, but for space around it, or a match of this pattern."""


async def shell(
    command: str | Sequence[str],
    *,
    cwd: str | Path,
    timeout_seconds: float = 60.0,
    env: Mapping[str, str] | None = None,
    expected: Expected | None = None,
    name: str = "shell",
    weight: float = 1.0,
) -> Subscore:
    """1.0 if the command ends with exit code 0 in time; the end of its output is the note.

    A text is run by `sh`, a list as it is. With `expected`, it must also print that. A program that this
    machine lacks is a GraderError.
    """
    environ = {**{key: os.environ[key] for key in PASSED_VARIABLES if key in os.environ}, **(env or {})}
    words = ["sh", "-c", command] if isinstance(command, str) else list(command)
    try:
        ran = await run_with_timeout(words, cwd, environ, timeout_seconds)
    except (OSError, ValueError) as error:
        raise GraderError(f"{words[0]!r} cannot be run in {str(cwd)!r}: {error}") from error
    if is_program_missing(command, ran, environ.get("PATH", os.defpath)):
        raise GraderError(f"{name}: this machine has no program for {command!r}: {ran.output.strip()}")
    return score_command(name, weight, ran, timeout_seconds, expected)


def score_command(
    name: str, weight: float, ran: CommandResult, seconds: float, expected: Expected | None = None
) -> Subscore:
    """The score of a command that ran within this many seconds; the end of its output is the note."""
    output = "\n".join(part[-NOTE_CHARACTERS:].strip() for part in (ran.output, ran.errors)).strip()
    verdict = f"exit code {ran.code}" if ran.code is not None else f"ended after {seconds:g} s"
    passed = ran.code == 0
    if passed and expected is not None and not is_expected(ran.output, expected):
        passed, verdict = False, "exit code 0, but not the expected output"
    return Subscore(name, float(passed), weight, f"{verdict}\n{output}".strip())


def is_expected(output: str, expected: Expected) -> bool:
    if isinstance(expected, str):
        return output.strip() == expected.strip()
    return expected.search(output) is not None


def is_program_missing(command: str | Sequence[str], ran: CommandResult, path: str) -> bool:
    """Whether the author's command names a program that this machine lacks. If it exists, an exit code of 126
    or 127 is the work of what was run, or of an agent that removed the script: then it is scored."""
    if ran.code not in CANNOT_RUN:
        return False
    words = command.split() if isinstance(command, str) else command
    first = words[0] if words else ""
    if not PROGRAM.fullmatch(first) or ("/" in first and not first.startswith(("/usr/", "/bin/"))):
        return False
    if not isinstance(command, str):
        return shutil.which(first, path=path) is None
    look = ["/bin/sh", "-c", 'command -v "$1"', "sh", first]
    return subprocess.run(look, env={"PATH": path}, capture_output=True, check=False).returncode != 0


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
