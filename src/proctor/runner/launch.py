"""Start a run in a sandbox, with certainty about what it can see, what it may use, and that nothing outlives
it.

    running = await launch(spec)
    async for line in running.output: …
    exit = await running.wait()

Visible inside are the machine's program folders, the paths that the run may read, its own folder, and one
address: PROCTOR_API_URL, which leads to the server. Knows nothing of what is played.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from proctor.client.contexts import URL_VARIABLE
from proctor.errors import ConfigError, InfraError
from proctor.isolation.command_line import (
    MEGABYTE,
    WORKSPACE_PATH,
    Forward,
    SandboxConfig,
    SandboxUser,
    forward_command,
)
from proctor.isolation.hidden_paths import find_covers
from proctor.isolation.limits import CgroupUsage, ControlGroup, RunLimits, make_control_group
from proctor.isolation.sandbox import (
    KILLED_EXIT_CODE,
    SandboxedCommand,
    choose_sandbox_user,
    find_bubblewrap,
    find_interpreter,
    start_sandboxed_command,
    system_folders,
)
from proctor.isolation.streams import Streams, input_descriptor
from proctor.isolation.unconfined import UnconfinedCommand, UnconfinedLauncher
from proctor.isolation.untrusted_tree import change_owner, discard_tree, occupied_bytes
from proctor.runner import enter as enter
from proctor.runner.output_lines import OutputLines
from proctor.support import sandbox_bridge
from proctor.support.logs import log

LimitReason = Literal["", "memory", "disk", "processes", "cpu"]

PORT, INTERNET_PORT = 8700, 8701
"""On the loopback inside."""
INTERNET_SOCKET = "/run/proctor/outward"
WATCH_SECONDS = 0.5
DISK_SHARE = 10
"""Measuring folders takes at most one part in this many of the time, unless the disk fills meanwhile."""
FORK_BOMB_REFUSALS = 1_000
"""A program that is still starting processes after this many refusals will not stop by itself."""
LAST_LINES_SECONDS = 5.0
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
NO_SANDBOX = (
    "Runs need bubblewrap, but `bwrap` is not installed; install it "
    "(`apt-get install bubblewrap`), or start with --allow-no-sandbox to "
    "run environments with all of this user's permissions."
)


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One process to start in a sandbox."""

    run_id: str
    command: tuple[str, ...]
    """The command line inside."""
    folder: Path
    """The run's own folder: /workspace inside, kept between attempts."""
    variables: Mapping[str, str] = {}
    """Environment variables, including secrets: they never appear on a command line or in a file."""
    stdin: bytes = b""
    """The program's standard input."""
    paths: tuple[str, ...] = ()
    """Readable inside, at the same paths: a Venv's `paths`."""
    hidden: tuple[Path, ...] = ()
    """Never visible, even below `paths`: the server's data, other runs' folders."""
    socket: Path | None = None
    """Leads to the server: a server relay. None: no connection to the outside."""
    outward: Path | None = None
    """Leads to the internet: an internet proxy. None: not granted."""
    writable: Mapping[str, str] = {}
    """Further folders to mount writable, and their paths inside."""
    limits: RunLimits = RunLimits()


class ProcessExit(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended, together with everything it started."""

    code: int
    signal: int | None = None
    reason: LimitReason = ""
    """The limit that ended it."""
    last_lines: tuple[str, ...] = ()
    """The last lines it printed."""


class SandboxedProcess:
    """A process in a sandbox."""

    def __init__(
        self,
        started: SandboxedCommand | UnconfinedCommand,
        spec: ProcessSpec,
        scratch: Path,
        group: ControlGroup,
        lines: OutputLines,
    ) -> None:
        self.pid = started.pid if isinstance(started, SandboxedCommand) else started.process.pid
        self._started = started
        self._limits = spec.limits
        self._filled = (spec.folder, *map(Path, spec.writable), scratch)
        self._scratch = scratch
        self._group = group
        self._lines = lines
        self._exceeded: LimitReason = ""
        self._leaving = asyncio.create_task(self._leave())

    @property
    def output(self) -> AsyncIterator[str]:
        """Its lines, as they come; iterate once. Lines that are not read in time are dropped, and block
        nothing."""
        return self._lines.__aiter__()

    async def wait(self) -> ProcessExit:
        return await asyncio.shield(self._leaving)

    async def end(self, grace_seconds: float = 10.0) -> ProcessExit:
        """Send SIGTERM, and kill it after the grace period."""
        if not self._leaving.done():
            send_sigterm(self._started)
            await asyncio.wait({self._leaving}, timeout=grace_seconds)
            await self._started.end()
        return await self.wait()

    async def _leave(self) -> ProcessExit:
        watching = asyncio.create_task(self._watch())
        try:
            code = await self._started.wait()
        except InfraError:
            if not self._group.usage().killed_for_memory:
                raise
            code = KILLED_EXIT_CODE  # the kernel killed the sandbox's first process
        finally:
            watching.cancel()
            await asyncio.wait({watching})
            usage = self._group.usage()
            await asyncio.to_thread(self._group.remove)
            await self._lines.end(LAST_LINES_SECONDS)
            await asyncio.to_thread(discard_tree, self._scratch)
        last_lines = tuple(self._lines.last)
        return ProcessExit(
            code=code,
            signal=code - 128 if code > 128 else None,
            reason=self._exceeded or find_exceeded_limit(code, usage, last_lines),
            last_lines=last_lines,
        )

    async def _watch(self) -> None:
        """End the run when it exceeds a limit that the kernel does not enforce."""
        limits, measure_at, enough_free = self._limits, 0.0, 0
        room = limits.disk_mb * MEGABYTE
        while not self._exceeded:
            await asyncio.sleep(WATCH_SECONDS)
            usage = self._group.usage()
            if limits.cpu_seconds is not None and usage.cpu_seconds > limits.cpu_seconds:
                self._exceeded = "cpu"
            elif usage.refused_processes > FORK_BOMB_REFUSALS:
                self._exceeded = "processes"
            elif (began := time.monotonic()) >= measure_at or free_bytes(self._filled) < enough_free:
                occupied = await asyncio.to_thread(occupied_bytes, self._filled, room)
                if occupied > room:
                    self._exceeded = "disk"
                now = time.monotonic()
                measure_at = now + DISK_SHARE * (now - began)
                enough_free = free_bytes(self._filled) - (room - occupied)
        await self._started.end()


def free_bytes(folders: Iterable[Path]) -> int:
    """What is free where these folders lie. A run that makes its folders slow to measure shows here, at once,
    when it writes more than it has left."""
    free = {}
    for folder in folders:
        with suppress(FileNotFoundError):
            status = os.statvfs(folder)
            free[folder.stat().st_dev] = status.f_bavail * status.f_frsize
    return sum(free.values())


async def launch(spec: ProcessSpec, *, allow_no_sandbox: bool = False) -> SandboxedProcess:
    """Start a process in a sandbox; without bubblewrap only if that is allowed, and then unconfined."""
    confined = has_bubblewrap()
    if not confined:
        if not allow_no_sandbox:
            raise ConfigError(NO_SANDBOX)
        warn_of_no_sandbox()
    user = choose_sandbox_user() if confined else SandboxUser()
    scratch = await asyncio.to_thread(make_scratch, spec, user)
    group = make_control_group(spec.run_id, spec.limits)
    lines = OutputLines()
    printing = await lines.open()
    start = start_sandboxed if confined else start_unconfined
    try:
        started = await start(spec, user, scratch, group, printing)
    except BaseException:
        group.remove()
        await asyncio.to_thread(discard_tree, scratch)
        raise
    finally:
        os.close(printing)
    return SandboxedProcess(started, spec, scratch, group, lines)


async def start_sandboxed(
    spec: ProcessSpec, user: SandboxUser, scratch: Path, group: ControlGroup, printing: int
) -> SandboxedCommand:
    system = system_folders()
    mounts = [path for path in dict.fromkeys(spec.paths) if not is_below(path, system)]
    config = SandboxConfig(
        folder=spec.folder,
        etc=scratch / "etc",
        scratch=scratch,
        user=user,
        system=system,
        mounts=mounts,
        writable=spec.writable,
        covers=find_covers([path.resolve() for path in spec.hidden], [*system, *mounts]),
        limits=spec.limits.per_process(group.watched),
        nests=True,
    )
    python, further = find_interpreter(config)
    config = replace(config, mounts=[*mounts, *further])
    script = inspect.getsource(sandbox_bridge)
    forwards = []
    if spec.socket is not None:
        forwards.append(Forward(PORT, str(spec.socket), python, script))
    if spec.outward is not None:
        forwards.append(Forward(INTERNET_PORT, str(spec.outward), python, script, INTERNET_SOCKET))
    with input_descriptor(entry_input(spec, build_variables(spec, PORT))) as stdin:
        streams = Streams(stdin, printing, printing)
        return await start_sandboxed_command(
            config, entry_command(python, spec), forwards, streams, group.join
        )


async def start_unconfined(
    spec: ProcessSpec, user: SandboxUser, scratch: Path, group: ControlGroup, printing: int
) -> UnconfinedCommand:
    """For operators who trust every environment: a process group, and per-process limits."""
    port = free_port()
    command = entry_command(sys.executable, spec)
    if spec.socket is not None:
        forward_to_server = Forward(
            port, "", sys.executable, inspect.getsource(sandbox_bridge), str(spec.socket)
        )
        command = [*forward_command(forward_to_server, user), *command]
    variables = {**build_variables(spec, port), "TMPDIR": str(scratch / "tmp")}
    with input_descriptor(entry_input(spec, variables)) as stdin:
        shell = UnconfinedLauncher(spec.folder, {}, spec.limits.per_process(group.watched))
        started = await shell.start(command, Streams(stdin, printing, printing), {})
    group.join(started.process.pid)
    return started


def entry_command(python: str, spec: ProcessSpec) -> list[str]:
    return [python, "-IS", "-c", inspect.getsource(enter), *spec.command]


def entry_input(spec: ProcessSpec, variables: Mapping[str, str]) -> bytes:
    return msgspec.json.encode(variables) + b"\n" + spec.stdin


def build_variables(spec: ProcessSpec, port: int) -> dict[str, str]:
    """The run's own variables, and the addresses of the server and, if granted, of the internet proxy."""
    addresses = {URL_VARIABLE: f"http://127.0.0.1:{port}"} if spec.socket is not None else {}
    if spec.outward is not None:
        addresses |= dict.fromkeys(PROXIES, f"http://127.0.0.1:{INTERNET_PORT}")
        addresses |= dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost")
    return {**spec.variables, **addresses}


def find_exceeded_limit(code: int, usage: CgroupUsage, last_lines: Sequence[str]) -> LimitReason:
    """Which limit of the kernel made a process fail, if any."""
    if code == 0:
        return ""
    if usage.killed_for_memory or any(line.startswith("MemoryError") for line in last_lines[-1:]):
        return "memory"
    if code == 128 + signal.SIGXCPU:
        return "cpu"
    if code == 128 + signal.SIGXFSZ:
        return "disk"
    return "processes" if usage.refused_processes else ""


def send_sigterm(started: SandboxedCommand | UnconfinedCommand) -> None:
    """Send SIGTERM to the program itself: the first process of a sandbox would ignore it."""
    with suppress(OSError, ValueError):
        if isinstance(started, UnconfinedCommand):
            os.killpg(started.process.pid, signal.SIGTERM)
            return
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        os.kill(min(map(int, children), key=namespace_pid), signal.SIGTERM)


def namespace_pid(pid: int) -> int:
    """Its process id in its own namespace."""
    status = Path(f"/proc/{pid}/status").read_text()
    ids = next(line for line in status.splitlines() if line.startswith("NSpid:"))
    return int(ids.split()[-1])


# The run's files


def make_scratch(spec: ProcessSpec, user: SandboxUser) -> Path:
    """Create its /tmp, /dev/shm and the few files of /etc; hand over the run's own folders. Blocks."""
    scratch = Path(tempfile.mkdtemp(prefix="proctor-run-"))
    for name in ("etc", "tmp", "shm"):
        (scratch / name).mkdir()
    for name in ("tmp", "shm"):
        (scratch / name).chmod(0o1777)
    (scratch / "etc" / "passwd").write_text(f"run:x:{user.uid}:{user.gid}::{WORKSPACE_PATH}:/bin/sh\n")
    (scratch / "etc" / "group").write_text(f"run:x:{user.gid}:\n")
    (scratch / "etc" / "hosts").write_text("127.0.0.1 localhost workspace\n")
    spec.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if user.steps_down:
        for folder in (spec.folder, *map(Path, spec.writable)):
            os.chown(folder, user.uid, user.gid)
            folder.chmod(0o711)  # bubblewrap enters it as root without capabilities
            change_owner(folder, user.uid, user.gid)
    return scratch


# The machine


def has_bubblewrap() -> bool:
    try:
        return bool(find_bubblewrap())
    except ConfigError:
        return False


@functools.cache
def warn_of_no_sandbox() -> None:
    log.warning("bubblewrap is not installed: environments run with all of this user's permissions.")


def is_below(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
