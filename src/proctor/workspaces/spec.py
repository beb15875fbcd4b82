"""Workspaces: a folder for every rollout, and a shell in it that sees nothing else of the machine.

    work = env.workspace("starter")

`work` is one name for many folders: in a template it means the folder of the rollout that runs there. Knows
nothing of agents, or of how sandboxes are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from proctor.contracts import CommandResult
from proctor.errors import ConfigError, EnvError
from proctor.isolation.command_line import CommandLimits
from proctor.isolation.covers import find_covers
from proctor.isolation.sandbox import check_sandbox
from proctor.rollout import Subscore
from proctor.support.threads import Threads
from proctor.workspaces.folder import AGENT, Command, RolloutFolder
from proctor.workspaces.shell import score_command

Isolation = Literal["bwrap", "none"]

COMMAND_SECONDS = 120.0
WRITE = 'rm -rf -- "$1" && mkdir -p -- "$(dirname -- "$1")" && cat > "$1"'

current_folders: ContextVar[Mapping[WorkspaceSpec, RolloutFolder]] = ContextVar("folders")
"""The folders of the rollout whose template runs here."""


@dataclass(frozen=True, eq=False)
class WorkspaceSpec:
    """What every rollout's folder is created from and, in a template, that folder itself."""

    name: str
    source: Path | None = None
    network: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[str] = ()
    limits: CommandLimits = field(default_factory=CommandLimits)
    seconds: float = COMMAND_SECONDS
    """Timeout of commands that do not set their own."""
    tools: bool = True
    """Whether the agent gets tools that work in it."""
    isolation: Isolation = "bwrap"

    # For templates

    @property
    def path(self) -> Path:
        """The folder, as this process sees it."""
        return self._folder().path

    async def run(
        self,
        command: Command,
        *,
        seconds: float | None = None,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a command in the sandbox: a text by `sh`, a list as it is."""
        limit = self.seconds if seconds is None else seconds
        return await self._folder().run_for_author(command, limit, stdin, variables or {})

    async def read(self, path: str) -> str | None:
        """The text of a file, looked up in the sandbox; None if there is none."""
        ran = await self.run(["cat", "--", path])
        return ran.output if ran.code == 0 else None

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file from inside the sandbox, replacing whatever the agent has put there."""
        stdin = content if isinstance(content, bytes) else content.encode()
        ran = await self.run(["sh", "-c", WRITE, "sh", path], stdin=stdin)
        if ran.code != 0:
            raise EnvError(f"{path!r} cannot be written in workspace {self.name!r}: {ran.output.strip()}")

    async def check(
        self,
        command: Command,
        *,
        seconds: float | None = None,
        variables: Mapping[str, str] | None = None,
        name: str = "check",
        weight: float = 1.0,
    ) -> Subscore:
        """1.0 if the command, run in the sandbox, ends with exit code 0 in time; its output is the note.

        A command that cannot be run at all is a GraderError.
        """
        ran = await self.run(command, seconds=seconds, variables=variables)
        return score_command(name, weight, ran, self.seconds if seconds is None else seconds)

    def _folder(self) -> RolloutFolder:
        folder = current_folders.get({}).get(self)
        if folder is None:
            raise EnvError(
                f"workspace {self.name!r} was used outside of a template; each rollout has a folder of its "
                "own, so use it in a template or in a tool"
            )
        return folder

    # For the environment

    async def check_usable(self, hidden: Sequence[Path], threads: Threads) -> None:
        """Raise, before anything is paid for, if no rollout could have such a folder."""
        if self.source is not None and not self.source.is_dir():
            raise ConfigError(f"Workspace {self.name!r}: there is no folder {str(self.source)!r} to copy.")
        for mount in self.mounts:
            if not Path(mount).exists():
                raise ConfigError(f"Workspace {self.name!r}: there is no {mount!r} to mount.")
            if mount in (cover.path for cover in find_covers(hidden, self.mounts)):
                raise ConfigError(
                    f"Workspace {self.name!r}: {mount!r} holds the environment's own code, or the folder it "
                    "is started in, which the agent must not see; mount a folder beside it."
                )
        if self.isolation == "none":
            return
        folder = RolloutFolder(self, hidden, threads)
        try:
            await threads.run(folder.make)
            await check_sandbox(folder.sandbox_config(AGENT))
        finally:
            await folder.close()
