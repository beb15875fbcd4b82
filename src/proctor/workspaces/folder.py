"""One rollout's folder: made before the template begins, worked in by the agent, looked at, and removed.

Knows nothing of agents or templates, or of how walls are built.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.contracts import CommandResult, HttpEndpoint
from proctor.errors import EnvError
from proctor.isolation.bubblewrap import WORKSPACE_PATH, SandboxConfig, SandboxUser
from proctor.isolation.covers import find_covers
from proctor.isolation.gate import input_descriptor
from proctor.isolation.sandbox import (
    RunningCommand,
    SandboxLauncher,
    Streams,
    choose_sandbox_user,
    system_folders,
)
from proctor.isolation.unconfined import UnconfinedLauncher
from proctor.isolation.untrusted_tree import change_owner, remove_tree
from proctor.support.output import OutputPipe
from proctor.support.threads import Threads
from proctor.trace import FileChange
from proctor.workspaces.snapshot import Snapshot, changes_since

if TYPE_CHECKING:
    from proctor.workspaces.spec import WorkspaceSpec

Command = str | Sequence[str]

AGENT, AUTHOR = "agent", "author"
"""Whose /tmp it is: what a template runs must not find what the agent has put there."""


class RolloutFolder:
    """One rollout's folder: what the agent works in until it is closed, and the template looks at."""

    def __init__(
        self,
        spec: WorkspaceSpec,
        hidden: Sequence[Path],
        threads: Threads,
        within: Path | None = None,
        held: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.spec = spec
        self._within = within
        """Where the folder is made; None: where this machine keeps what is temporary."""
        self._held = held
        """Given the first process of every sandbox before that has begun anything."""
        self._threads = threads
        self.closed = False
        """Whether the agent may start nothing more."""
        self._hidden = hidden
        self._root: Path | None = None
        self._user = choose_sandbox_user() if spec.isolation == "bwrap" else SandboxUser()
        self._starting: set[asyncio.Task[RunningCommand]] = set()
        self._running: set[RunningCommand] = set()
        self._before: Snapshot | None = None

    @property
    def path(self) -> Path:
        return self._made() / "folder"

    @property
    def inside(self) -> str:
        """The folder, as commands see it."""
        return WORKSPACE_PATH if self.spec.isolation == "bwrap" else str(self.path)

    def _made(self) -> Path:
        if self._root is None:
            raise EnvError(f"workspace {self.spec.name!r} is not there yet, or not any more")
        return self._root

    # Its life

    def make(self) -> None:
        """Make the folder: empty, or a copy of the source. Blocks."""
        root = self._root = Path(tempfile.mkdtemp(prefix="proctor-workspace-", dir=self._within))
        for name in ("etc", AGENT, AUTHOR):
            (root / name).mkdir()
        uid, gid = self._user.uid, self._user.gid
        (root / "etc" / "passwd").write_text(f"agent:x:{uid}:{gid}::{WORKSPACE_PATH}:/bin/sh\n")
        (root / "etc" / "group").write_text(f"agent:x:{gid}:\n")
        (root / "etc" / "hosts").write_text("127.0.0.1 localhost workspace\n")
        try:
            if self.spec.source is None:
                (root / "folder").mkdir()
            else:
                shutil.copytree(self.spec.source, root / "folder", symlinks=True)
        except (OSError, shutil.Error) as error:
            raise EnvError(f"workspace {self.spec.name!r} cannot be copied: {error}") from error
        for place in (root / who / name for who in (AGENT, AUTHOR) for name in ("tmp", "shm")):
            place.mkdir()
            place.chmod(0o1777)
        self.hand_over()

    def hand_over(self) -> None:
        """Give what the template has put there to the user that commands run as. Blocks."""
        if self._user.steps_down:
            os.chown(self.path, self._user.uid, self._user.gid)
            change_owner(self.path, self._user.uid, self._user.gid)

    def lend(self, descriptor: int) -> None:
        """Give something that is open to the user that commands run as."""
        if self._user.steps_down:
            os.fchown(descriptor, self._user.uid, self._user.gid)

    def remove(self) -> None:
        """Blocks; also takes away what the agent made hard to remove."""
        root, self._root = self._root, None
        if root is None:
            return
        try:
            remove_tree(root)
        except OSError as error:
            raise EnvError(f"the folder of workspace {self.spec.name!r} cannot be removed: {root}") from error

    async def close(self) -> None:
        await self.end_agent()
        await self._threads.run(self.remove)

    def walls(self, who: str, mounts: Sequence[str] = ()) -> SandboxConfig:
        root, spec = self._made(), self.spec
        mounts = [*spec.mounts, *mounts]
        return SandboxConfig(
            folder=root / "folder",
            etc=root / "etc",
            scratch=root / who,
            user=self._user,
            network=spec.network,
            variables=spec.variables,
            system=system_folders(),
            mounts=mounts,
            covers=find_covers(self._hidden, [*system_folders(), *mounts]),
            limits=spec.limits,
        )

    # What the agent does

    async def run(
        self,
        command: Command,
        *,
        seconds: float,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        door: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
    ) -> CommandResult:
        return await self._run(command, seconds, stdin, variables or {}, door, mounts)

    @property
    def is_busy(self) -> bool:
        """Whether something runs here."""
        return bool(self._running or self._starting)

    async def end_agent(self) -> None:
        """End whatever runs here, and let the agent start nothing more."""
        self.closed = True
        if self._starting:
            await asyncio.wait(self._starting)
        await asyncio.gather(*(started.end() for started in [*self._running]))

    def reopen(self) -> None:
        self.closed = False

    # What the template does

    async def run_for_author(
        self, command: Command, seconds: float, stdin: bytes, variables: Mapping[str, str]
    ) -> CommandResult:
        await self._threads.run(self.hand_over)
        return await self._run(command, seconds, stdin, variables, by_author=True)

    async def _run(
        self,
        command: Command,
        seconds: float,
        stdin: bytes,
        variables: Mapping[str, str],
        door: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
        by_author: bool = False,
    ) -> CommandResult:
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        with input_descriptor(stdin) as to_read:
            async with OutputPipe.open() as output:
                streams = Streams(to_read, output.pipe, output.pipe)
                async with self.started(words, streams, variables, door, mounts, by_author) as started:
                    output.close_pipe()
                    try:
                        async with asyncio.timeout(seconds):
                            code: int | None = await started.wait()
                    except TimeoutError:
                        code = None
                return CommandResult(code, await output.text())

    @asynccontextmanager
    async def started(
        self,
        words: Sequence[str],
        streams: Streams,
        variables: Mapping[str, str],
        door: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
        by_author: bool = False,
    ) -> AsyncIterator[RunningCommand]:
        """A command that runs for as long as the block does, at most."""
        if self.closed and not by_author:
            raise EnvError(f"workspace {self.spec.name!r} is closed: the agent's work is being looked at")
        starting = asyncio.create_task(self._start(words, streams, variables, door, mounts, by_author))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        try:
            started = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})  # half a sandbox could not be ended
            if not starting.cancelled() and starting.exception() is None:
                await starting.result().end()
                self._running.discard(starting.result())
            raise
        try:
            yield started
        finally:
            await started.end()
            self._running.discard(started)

    async def _start(
        self,
        words: Sequence[str],
        streams: Streams,
        variables: Mapping[str, str],
        door: HttpEndpoint | None,
        mounts: Sequence[str],
        by_author: bool,
    ) -> RunningCommand:
        shell: SandboxLauncher | UnconfinedLauncher = (
            SandboxLauncher(self.walls(AUTHOR if by_author else AGENT, mounts), self._held)
            if self.spec.isolation == "bwrap"
            else UnconfinedLauncher(self.path, self.spec.variables, self.spec.limits)
        )
        started = await shell.start(words, streams, variables, door)
        self._running.add(started)
        return started

    # Changes

    def take_snapshot(self) -> None:
        """Remember every file as it is. Blocks."""
        self._before = Snapshot.of(self.path, self.spec.source)

    def changes(self) -> list[FileChange]:
        """What has changed since. Blocks."""
        return [] if self._before is None else changes_since(self._before, self.path)
