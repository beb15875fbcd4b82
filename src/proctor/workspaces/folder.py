"""One rollout's folder: created before the template starts, used by the agent, inspected, and removed.

Knows nothing of agents or templates, or of how sandboxes are made.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.contracts import CommandResult, HttpEndpoint
from proctor.errors import EnvError
from proctor.isolation.command_line import PATH, WORKSPACE_PATH, CommandLimits, SandboxConfig, SandboxUser
from proctor.isolation.hidden_paths import find_covers
from proctor.isolation.sandbox import (
    RunningCommand,
    SandboxLauncher,
    choose_sandbox_user,
    system_folders,
)
from proctor.isolation.streams import Streams, input_descriptor
from proctor.isolation.unconfined import UnconfinedLauncher
from proctor.isolation.untrusted_tree import change_owner, remove_tree
from proctor.support.output import OutputBuffer, OutputPipe
from proctor.support.threads import Threads
from proctor.trace import FileChange
from proctor.workspaces.disk_watch import DiskWatch
from proctor.workspaces.grading import (
    HOME_PATH,
    PYTHON_PATH,
    TESTS_PATH,
    GradingFolders,
    Tests,
    grading_variables,
    make_grading_folders,
    safe_path,
    tests_variables,
)
from proctor.workspaces.snapshot import Snapshot, changes_since

if TYPE_CHECKING:
    from proctor.workspaces.spec import WorkspaceSpec

Command = str | Sequence[str]

OVERFULL_FILE_MB = 1
AGENT, AUTHOR = "agent", "author"
"""Each has a /tmp of its own: commands of the template must not find files that the agent put there."""


@dataclass(frozen=True)
class AuthorCommand:
    """A command of the template, rather than the agent's; with `grading` after the agent has worked."""

    grading: GradingFolders | None = None


class RolloutFolder:
    """One rollout's folder: the agent works in it until it is closed, then the template inspects it."""

    def __init__(
        self,
        spec: WorkspaceSpec,
        hidden: Sequence[Path],
        threads: Threads,
        within: Path | None = None,
        on_first_process: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.spec = spec
        self._within = within
        """Where to create the folder; None for the machine's temporary folder."""
        self._on_first_process = on_first_process
        """Called with the first process of every sandbox before that has started anything."""
        self._threads = threads
        self.closed = False
        """Whether the agent may no longer start anything."""
        self._hidden = hidden
        self._root: Path | None = None
        self._user = choose_sandbox_user() if spec.isolation == "bwrap" else SandboxUser()
        self._starting: set[asyncio.Task[RunningCommand]] = set()
        self._running: set[RunningCommand] = set()
        self._before: Snapshot | None = None
        self._disk: DiskWatch | None = None

    @property
    def path(self) -> Path:
        return self._existing_root() / "folder"

    @property
    def inside(self) -> str:
        """The folder, as commands see it."""
        return WORKSPACE_PATH if self.spec.isolation == "bwrap" else str(self.path)

    def _existing_root(self) -> Path:
        if self._root is None:
            raise EnvError(f"workspace {self.spec.name!r} does not exist yet, or was removed")
        return self._root

    # Creation and removal

    def make(self) -> None:
        """Make the folder: empty, or a copy of the source. Blocks."""
        root = self._root = Path(tempfile.mkdtemp(prefix="proctor-workspace-", dir=self._within))
        for user, home in ((AGENT, WORKSPACE_PATH), (AUTHOR, HOME_PATH)):
            (root / user).mkdir()
            self._write_etc(root / user / "etc", home)
        try:
            if self.spec.source is None:
                (root / "folder").mkdir()
            else:
                shutil.copytree(self.spec.source, root / "folder", symlinks=True)
        except (OSError, shutil.Error) as error:
            raise EnvError(f"workspace {self.spec.name!r} cannot be created: {error}") from error
        for scratch in (root / user / name for user in (AGENT, AUTHOR) for name in ("tmp", "shm")):
            scratch.mkdir()
            scratch.chmod(0o1777)
        if self.spec.limits.disk_mb is not None:
            folders = [root / name for name in ("folder", AGENT, AUTHOR)]
            self._disk = DiskWatch(folders, self.spec.limits.disk_mb, self._threads)
        self.hand_over()

    def _write_etc(self, etc: Path, home: str) -> None:
        uid, gid = self._user.uid, self._user.gid
        etc.mkdir()
        (etc / "passwd").write_text(f"agent:x:{uid}:{gid}::{home}:/bin/sh\n")
        (etc / "group").write_text(f"agent:x:{gid}:\n")
        (etc / "hosts").write_text("127.0.0.1 localhost workspace\n")

    def restore_access(self) -> None:
        """Let the owner of the folder into it again, if the agent has closed it to everyone."""
        mode = stat.S_IMODE(self.path.stat().st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            self.path.chmod(mode | stat.S_IRWXU)

    def hand_over(self) -> None:
        """Give the template's files to the user that commands run as. Blocks."""
        if self._user.steps_down:
            os.chown(self.path, self._user.uid, self._user.gid)
            change_owner(self.path, self._user.uid, self._user.gid)

    def lend(self, descriptor: int) -> None:
        """Give an open file to the user that commands run as."""
        if self._user.steps_down:
            os.fchown(descriptor, self._user.uid, self._user.gid)

    def remove(self) -> None:
        """Remove the folder, whatever the agent did to prevent that. Blocks."""
        root, self._root = self._root, None
        if root is None:
            return
        try:
            remove_tree(root)
        except OSError as error:
            raise EnvError(f"cannot remove the folder of workspace {self.spec.name!r}: {root}") from error

    async def close(self) -> None:
        await self.end_agent()
        await self._threads.run(self.remove)

    def sandbox_config(
        self, user: str, mounts: Sequence[str] = (), grading: GradingFolders | None = None
    ) -> SandboxConfig:
        root, spec = self._existing_root(), self.spec
        mounts = [*spec.mounts, *mounts]
        config = SandboxConfig(
            folder=root / "folder",
            etc=root / user / "etc",
            scratch=root / user,
            user=self._user,
            network=spec.network,
            variables=spec.variables,
            system=system_folders(),
            mounts=mounts,
            covers=find_covers(self._hidden, [*system_folders(), *mounts]),
            limits=self._limits(),
        )
        return config if grading is None else confine_grading(config, grading)

    # For the agent

    async def run(
        self,
        command: Command,
        *,
        seconds: float,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        endpoint: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
    ) -> CommandResult:
        return await self._run(command, seconds, stdin, variables or {}, endpoint, mounts)

    @property
    def is_busy(self) -> bool:
        """Whether something runs here."""
        return bool(self._running or self._starting)

    async def end_agent(self) -> None:
        """End everything that runs here, and let the agent start nothing more."""
        self.closed = True
        if self._starting:
            await asyncio.wait(self._starting)
        await asyncio.gather(*(started.end() for started in [*self._running]))

    def reopen(self) -> None:
        self.closed = False

    # For the template

    @property
    def agent_has_worked(self) -> bool:
        """Whether the agent could have changed anything here."""
        return self._before is not None

    @property
    def search_path(self) -> str:
        """PATH, as grading commands have it."""
        if self.spec.isolation == "bwrap":
            return safe_path(self.spec.variables.get("PATH", PATH), WORKSPACE_PATH)
        return safe_path(os.environ.get("PATH", PATH), str(self.path))

    async def run_for_author(
        self,
        command: Command,
        seconds: float,
        stdin: bytes,
        variables: Mapping[str, str],
        *,
        tests: Tests | None = None,
        kept: OutputBuffer | None = None,
        apart: bool = False,
    ) -> CommandResult:
        """Run a command of the template. `kept` receives its output, and `apart` splits off its errors."""
        await self._threads.run(self.hand_over)
        author = await self._threads.run(lambda: self._prepare_author_command(tests))
        return await self._run(command, seconds, stdin, variables, author=author, kept=kept, apart=apart)

    def _prepare_author_command(self, tests: Tests | None) -> AuthorCommand:
        """Before the agent has worked, commands prepare what it will find, so they share its home. Blocks."""
        if tests is None and not self.agent_has_worked:
            return AuthorCommand()
        within = self._existing_root() / AUTHOR
        made = make_grading_folders(within, tests, self.spec.beside, self.inside)
        if self._user.steps_down:
            os.chown(made.home, self._user.uid, self._user.gid)
            if made.tests is not None:
                change_owner(made.tests, self._user.uid, self._user.gid)
        return AuthorCommand(made)

    async def _run(
        self,
        command: Command,
        seconds: float,
        stdin: bytes,
        variables: Mapping[str, str],
        endpoint: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
        author: AuthorCommand | None = None,
        kept: OutputBuffer | None = None,
        apart: bool = False,
    ) -> CommandResult:
        command_line = ["sh", "-c", command] if isinstance(command, str) else list(command)
        with input_descriptor(stdin) as to_read:
            async with OutputPipe.open(kept) as output, OutputPipe.open() as errors:
                streams = Streams(to_read, output.pipe, errors.pipe if apart else output.pipe)
                async with self.start_command(
                    command_line, streams, variables, endpoint, mounts, author
                ) as started:
                    output.close_pipe()
                    errors.close_pipe()
                    try:
                        async with asyncio.timeout(seconds):
                            code: int | None = await started.wait()
                    except TimeoutError:
                        code = None
                note = self._disk_note()
                texts = (
                    ("", note) if author else (note, "")
                )  # what the template reads stays as it was printed
                return CommandResult(code, await output.text() + texts[0], await errors.text() + texts[1])

    def _disk_note(self) -> str:
        if self._disk is None or not self._disk.is_overfull:
            return ""
        most = f"{self._disk.disk_mb:,} MB"
        return f"\n[The workspace holds more than {most}; delete files, or only small ones can be written.]\n"

    @asynccontextmanager
    async def start_command(
        self,
        command_line: Sequence[str],
        streams: Streams,
        variables: Mapping[str, str],
        endpoint: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
        author: AuthorCommand | None = None,
    ) -> AsyncIterator[RunningCommand]:
        """A command that runs at most as long as the block."""
        if self.closed and author is None:
            raise EnvError(f"workspace {self.spec.name!r} is closed: the agent's work is being scored")
        starting = asyncio.create_task(
            self._start(command_line, streams, variables, endpoint, mounts, author)
        )
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        try:
            started = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})  # a sandbox that is still starting could not be ended
            if not starting.cancelled() and starting.exception() is None:
                await starting.result().end()
                self._running.discard(starting.result())
            raise
        watching = None if self._disk is None else asyncio.create_task(self._disk.watch(started.end))
        try:
            yield started
        finally:
            if watching is not None:
                watching.cancel()
            await started.end()
            self._running.discard(started)

    async def _start(
        self,
        command_line: Sequence[str],
        streams: Streams,
        variables: Mapping[str, str],
        endpoint: HttpEndpoint | None,
        mounts: Sequence[str],
        author: AuthorCommand | None,
    ) -> RunningCommand:
        self.restore_access()
        if self._disk is not None:
            await self._disk.measure_if_due()
        user, grading = (AGENT, None) if author is None else (AUTHOR, author.grading)
        started = await self._launcher(user, mounts, grading).start(
            command_line, streams, variables, endpoint
        )
        self._running.add(started)
        return started

    def _launcher(
        self, user: str, mounts: Sequence[str], grading: GradingFolders | None
    ) -> SandboxLauncher | UnconfinedLauncher:
        spec = self.spec
        if spec.isolation == "bwrap":
            return SandboxLauncher(self.sandbox_config(user, mounts, grading), self._on_first_process)
        if grading is None:
            return UnconfinedLauncher(self.path, spec.variables, self._limits())
        variables = grading_variables(spec.variables, self.inside)
        if grading.tests is not None:
            variables |= tests_variables(str(grading.tests), str(grading.python), self.inside)
        return UnconfinedLauncher(
            grading.tests or self.path, variables, self._limits(), home=grading.home, path=self.search_path
        )

    def _limits(self) -> CommandLimits:
        """Of one command. When its share of the disk is used up, it can write only small files."""
        limits = self.spec.limits
        if self._disk is not None and self._disk.is_overfull:
            return replace(limits, file_mb=OVERFULL_FILE_MB)
        return limits

    # Changes

    def take_snapshot(self) -> None:
        """Remember every file as it is. Blocks."""
        self._before = Snapshot.of(self.path, self.spec.source)

    def changes(self) -> list[FileChange]:
        """What has changed since. Blocks."""
        self.restore_access()
        return [] if self._before is None else changes_since(self._before, self.path)


def confine_grading(config: SandboxConfig, grading: GradingFolders) -> SandboxConfig:
    """The sandbox of a grading command: the agent's work, and nothing else that the agent could write."""
    variables, read_only = grading_variables(config.variables), {}
    if grading.tests is not None:
        variables |= tests_variables(TESTS_PATH, PYTHON_PATH, WORKSPACE_PATH)
        read_only = {str(grading.tests): TESTS_PATH, str(grading.python): PYTHON_PATH}
    return replace(
        config,
        variables=variables,
        home=HOME_PATH,
        writable={**config.writable, str(grading.home): HOME_PATH},
        read_only=read_only,
        working_folder=WORKSPACE_PATH if grading.tests is None else TESTS_PATH,
    )
