"""Run a command-line agent program on this machine: in a fresh folder, with a fresh home, and few variables.

It sees only those of the machine's variables that hold no secrets. When it ends, or is ended, so does
everything it started. That keeps things tidy, but is not a sandbox. Knows nothing of models or tasks.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from proctor.agents.program import KEPT_ERRORS, KEPT_OUTPUT, ProgramInvocation, ProgramResult
from proctor.errors import AgentError
from proctor.support.output import OutputBuffer, OutputPipe
from proctor.workspaces.shell import PASSED_VARIABLES

GRACE_SECONDS = 3.0
"""Between SIGTERM and SIGKILL."""
LOOKS = 60
"""How often to check, in that time, whether all have exited."""
MARK = "PROCTOR_ROLLOUT"
"""A variable that marks every process a program starts."""
GONE = (b"Z", b"X")
"""States of processes that have exited but are not yet reaped."""


class HostProgramRunner:
    """A folder for one run of a program."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="proctor-"))
        self._work = self._folder / "work"
        self._home = self._folder / "home"
        for folder in (self._work, self._home):
            folder.mkdir()
        self.prompt_file = str(self._folder / "prompt.txt")

    async def run(self, invocation: ProgramInvocation) -> ProgramResult:
        Path(self.prompt_file).write_text(invocation.prompt, encoding="utf-8")
        (self._folder / "stdin").write_bytes(invocation.stdin)
        passed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
        environ = {**passed, "HOME": str(self._home), **invocation.variables, MARK: str(self._folder)}
        async with (
            OutputPipe.open(OutputBuffer(head_bytes=0, tail_bytes=KEPT_OUTPUT)) as stdout,
            OutputPipe.open(OutputBuffer(head_bytes=0, tail_bytes=KEPT_ERRORS)) as stderr,
        ):
            process = await self._start(invocation.words, environ, stdout, stderr)
            try:
                code = await process.wait()
            finally:
                await end_all(process.pid, f"{MARK}={self._folder}")
                await process.wait()
            printed, errors = await asyncio.gather(stdout.text(), stderr.text())
        return ProgramResult(code, printed.strip(), errors.strip(), self._answer(invocation.answer_file))

    async def close(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _start(
        self, words: list[str], environ: dict[str, str], stdout: OutputPipe, stderr: OutputPipe
    ) -> asyncio.subprocess.Process:
        try:
            with (self._folder / "stdin").open("rb") as stdin:
                return await asyncio.create_subprocess_exec(
                    *words,
                    cwd=self._work,
                    env=environ,
                    stdin=stdin,
                    stdout=stdout.pipe,
                    stderr=stderr.pipe,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            raise AgentError(f"{words[0]!r} cannot be run: {error}") from error
        finally:
            stdout.close_pipe()
            stderr.close_pipe()

    def _answer(self, name: str | None) -> str | None:
        if name is None:
            return None
        with suppress(OSError), (self._work / name).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - KEPT_OUTPUT))
            return file.read(KEPT_OUTPUT).decode(errors="replace")
        return None


async def end_all(leader: int, mark: str) -> None:
    """End a program and all it started, found by group or by the mark in their environment."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        asked: set[int] = set()  # once each: some programs abort on a second SIGTERM
        for _ in range(LOOKS):
            left = set(find_leftover_processes(leader, mark))
            if not left:
                return
            for pid in left - asked:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, sign)
            asked |= left
            await asyncio.sleep(GRACE_SECONDS / LOOKS)


def find_leftover_processes(leader: int, mark: str) -> Iterator[int]:
    """The processes of a group, and marked ones that left it."""
    wanted = mark.encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, group = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:3]
            if state in GONE:
                continue
            if int(group) == leader or wanted in (folder / "environ").read_bytes():
                yield int(folder.name)
        except (OSError, ValueError):
            continue
