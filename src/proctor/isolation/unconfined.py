"""Run commands in a rollout's folder without a sandbox, for authors who ask for that.

Protects against accidents, not against an attacker: a folder, few variables, and a process group that is
killed as a whole. Knows nothing of rollouts or of what is run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.contracts import HttpEndpoint
from proctor.errors import InfraError
from proctor.isolation.command_line import PATH, CommandLimits
from proctor.isolation.streams import Streams
from proctor.support.processes import end_group


class UnconfinedLauncher:
    """Starts commands as this process's own user."""

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        limits: CommandLimits,
        *,
        home: Path | None = None,
        path: str | None = None,
    ) -> None:
        self.folder = folder
        self.variables = variables
        self.limits = limits
        self.home = home or folder
        self.path = os.environ.get("PATH", PATH) if path is None else path

    async def start(
        self,
        command: Sequence[str],
        streams: Streams,
        variables: Mapping[str, str],
        endpoint: HttpEndpoint | None = None,  # noqa: ARG002
    ) -> UnconfinedCommand:
        own = {
            "PATH": self.path,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
        }
        try:
            process = await asyncio.create_subprocess_exec(
                *self.limits.prlimit_command(),
                *command,
                cwd=self.folder,
                env={**own, **self.variables, **variables},
                stdin=streams.stdin,
                stdout=streams.stdout,
                stderr=streams.stderr,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise InfraError(f"cannot start {command[0]!r}: {error}") from error
        return UnconfinedCommand(process)


class UnconfinedCommand:
    """A command and its process group."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def wait(self) -> int:
        try:
            code = await self.process.wait()
            return code if code >= 0 else 128 - code
        finally:
            end_group(self.process.pid)

    async def end(self) -> None:
        end_group(self.process.pid)
        await asyncio.shield(self.process.wait())
