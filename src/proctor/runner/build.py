"""Build a virtual environment in a process of its own, so that the build cannot block its caller.

    venv = await build_in_process(request, variables, log_line)

The process reads the request from its standard input and answers with one JSON object per line: the
installer's output, and finally the virtual environment, or why there is none. It ends with its parent
process, and is killed when it takes too long. Knows nothing of servers.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import InstallError, ProctorError
from proctor.runner.confined_pip import die_with
from proctor.runner.fetch import FetchRules
from proctor.runner.folder_lock import temporary_files_in_one_folder
from proctor.runner.venvs import Venv, Venvs
from proctor.support.loop import run_in_loop

BUILD_SECONDS = 2_100.0
"""Longer than fetching and installing may take together, so that the builder itself can report which took too
long."""
LONGEST_MESSAGE = 4 * 2**20
TEMPORARY = "proctor-build-"


class BuildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which virtual environment to build, and what the build may do."""

    cache: Path
    wheel: Path
    wheel_name: str
    lock: str | None = None
    hidden: tuple[Path, ...] = ()
    direct_hosts: tuple[str, ...] = ()
    allow_no_sandbox: bool = False
    parent: int = 0

    @property
    def venvs(self) -> Venvs:
        return Venvs(
            self.cache,
            hidden=self.hidden,
            rules=FetchRules(direct_hosts=self.direct_hosts),
            allow_no_sandbox=self.allow_no_sandbox,
        )


class BuildMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message from a builder: a line of the installer, or the result."""

    line: str = ""
    venv: Venv | None = None
    problem: str = ""
    last_lines: tuple[str, ...] = ()


async def build_in_process(
    request: BuildRequest,
    variables: Mapping[str, str],
    log_line: Callable[[str], None],
    seconds: float = BUILD_SECONDS,
) -> Venv:
    """The virtual environment, built by a process with these environment variables; raises InstallError."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "proctor.runner.build"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=dict(variables),
        limit=LONGEST_MESSAGE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            return await wait_for_venv(
                process, msgspec.structs.replace(request, parent=os.getpid()), log_line
            )
    except TimeoutError as error:
        raise InstallError(
            f"Installing the environment took longer than {seconds:.0f} seconds; "
            "drop dependencies it can do without."
        ) from error
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def wait_for_venv(
    process: asyncio.subprocess.Process, request: BuildRequest, log_line: Callable[[str], None]
) -> Venv:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(msgspec.json.encode(request, enc_hook=str))
    process.stdin.close()
    async for raw in process.stdout:
        message = msgspec.json.decode(raw, type=BuildMessage, dec_hook=decode_path)
        if message.venv is not None:
            return message.venv
        if message.problem:
            raise InstallError(message.problem, message.last_lines)
        log_line(message.line)
    code = await process.wait()
    raise InstallError(f"The process that installs the environment ended with exit code {code}; try again.")


def decode_path(kind: type, value: Any) -> Any:
    return kind(value)


# In the process


async def build(request: BuildRequest) -> BuildMessage:
    try:
        venv = await request.venvs.ready(
            request.wheel,
            request.wheel_name,
            request.lock,
            lambda line: write_message(BuildMessage(line=line)),
        )
    except InstallError as error:
        return BuildMessage(problem=str(error), last_lines=error.last_lines)
    except (ProctorError, OSError) as error:
        return BuildMessage(problem=str(error))
    return BuildMessage(venv=venv)


def write_message(message: BuildMessage) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message, enc_hook=str) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=BuildRequest, dec_hook=decode_path)
    die_with(request.parent)
    with temporary_files_in_one_folder(TEMPORARY):
        write_message(run_in_loop(build(request)))


if __name__ == "__main__":
    main()
