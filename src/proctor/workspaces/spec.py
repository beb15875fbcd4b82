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
from proctor.errors import ConfigError, EnvError, GraderError, SpoiledWorkspaceError
from proctor.isolation.command_line import MEGABYTE, CommandLimits
from proctor.isolation.hidden_paths import find_covers
from proctor.isolation.machine import default_limits
from proctor.isolation.sandbox import check_sandbox
from proctor.rollout import Subscore
from proctor.support.output import OutputBuffer
from proctor.support.threads import Threads
from proctor.workspaces.folder import AGENT, Command, RolloutFolder
from proctor.workspaces.grading import Tests
from proctor.workspaces.shell import Expected, is_program_missing, score_command

Isolation = Literal["bwrap", "none"]
AUTO: Literal["auto"] = "auto"
Limit = int | Literal["auto"] | None
"""A limit, one that is sized to the machine, or none."""

COMMAND_SECONDS = 120.0
READ_BYTES = 64 * MEGABYTE
WRITE = """
case $1 in /*) path=$1 ;; *) path=./$1 ;; esac
folder=${path%/*} way=
IFS=/ && set -f
for name in $folder; do
  way=$way$name/
  [ -d "$way" ] || { rm -rf "${way%/}"; mkdir "$way"; } || exit 1
  { [ -w "$way" ] && [ -x "$way" ]; } || chmod u+rwx "$way" 2>/dev/null
done
[ ! -d "$path" ] || [ -L "$path" ] || chmod -R u+rwX "$path" 2>/dev/null
rm -rf "$path" && cat > "$path"
"""
"""Makes its way through whatever the agent has put there: a file in place of a folder, or a closed folder."""
NO_SPACE = "No space left on device"

current_folders: ContextVar[Mapping[WorkspaceSpec, RolloutFolder]] = ContextVar("folders")
"""The folders of the rollout whose template runs here."""


def choose_limits(memory_mb: Limit, processes: Limit, file_mb: Limit, disk_mb: Limit) -> CommandLimits:
    """The given limits, and the machine's defaults for the others."""
    usual = default_limits()
    return CommandLimits(
        memory_mb=None if memory_mb == AUTO else memory_mb,
        processes=usual.processes if processes == AUTO else processes,
        file_mb=usual.file_mb if file_mb == AUTO else file_mb,
        data_mb=usual.data_mb if memory_mb == AUTO else None,
        disk_mb=usual.disk_mb if disk_mb == AUTO else disk_mb,
    )


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
    beside: Path | None = None
    """The folder of the file that created it, from which relative paths of tests are resolved."""

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

    async def read(self, path: str, *, max_bytes: int = READ_BYTES) -> str | None:
        """The whole text of a file, looked up in the sandbox; None if there is none.

        A file of more than `max_bytes` is a SpoiledWorkspaceError, which scores 0 unless you catch it.
        """
        kept = OutputBuffer(head_bytes=max_bytes + 1, tail_bytes=0)
        command = ["head", "-c", str(max_bytes + 1), "--", path]
        ran = await self._folder().run_for_author(command, self.seconds, b"", {}, kept=kept, apart=True)
        if kept.total_bytes > max_bytes:
            raise SpoiledWorkspaceError(
                f"{path!r} in workspace {self.name!r} has more than {max_bytes:,} bytes; if that is right, "
                "pass read() a larger max_bytes"
            )
        return ran.output if ran.code == 0 else None

    async def write(self, path: str, content: str | bytes) -> None:
        """Write a file from inside the sandbox, replacing whatever the agent has put there."""
        stdin = content if isinstance(content, bytes) else content.encode()
        ran = await self.run(["sh", "-c", WRITE, "sh", path], stdin=stdin)
        if ran.code != 0:
            is_agents = self._folder().agent_has_worked and NO_SPACE not in ran.output
            kind = SpoiledWorkspaceError if is_agents else EnvError
            raise kind(f"{path!r} cannot be written in workspace {self.name!r}: {ran.output.strip()}")

    async def check(
        self,
        command: Command,
        *,
        tests: Tests | None = None,
        expected: Expected | None = None,
        seconds: float | None = None,
        variables: Mapping[str, str] | None = None,
        name: str = "check",
        weight: float = 1.0,
    ) -> Subscore:
        """1.0 if the command, run in the sandbox, ends with exit code 0 in time; its output is the note.

        With `expected`, it must also print that text, or something that matches that pattern: code under
        test can end its process with any exit code. `tests` is a file, a folder or texts by name, which the
        agent has never seen and cannot write; the command starts there, as `/tests`.
        A program that this machine lacks is a GraderError; whatever else goes wrong scores 0.
        """
        folder, limit = self._folder(), self.seconds if seconds is None else seconds
        ran = await folder.run_for_author(
            command, limit, b"", variables or {}, tests=tests, apart=expected is not None
        )
        if is_program_missing(command, ran, folder.search_path):
            raise GraderError(f"{name}: this machine has no program for {command!r}: {ran.output.strip()}")
        return score_command(name, weight, ran, limit, expected)

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
