"""Start a run behind walls: certain of what it can see, what it may use, and that nothing outlives it.

    running = await launch(spec)
    async for line in running.output: …
    ended = await running.wait()

Inside there is the machine's program folders, what the run is given to read, its own folder, and one address:
PROCTOR_API_URL, which leads to the server. Knows nothing of what is played.
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
from proctor.isolation import forward
from proctor.isolation.bubblewrap import (
    MEGABYTE,
    WORKSPACE_PATH,
    Forward,
    SandboxConfig,
    SandboxUser,
    forward_command,
)
from proctor.isolation.covers import find_covers
from proctor.isolation.gate import input_descriptor
from proctor.isolation.limits import CgroupUsage, ControlGroup, RunLimits, make_control_group
from proctor.isolation.sandbox import (
    KILLED_EXIT_CODE,
    SandboxedCommand,
    Streams,
    choose_sandbox_user,
    find_bubblewrap,
    find_interpreter,
    start_sandboxed_command,
    system_folders,
)
from proctor.isolation.unconfined import UnconfinedCommand, UnconfinedLauncher
from proctor.isolation.untrusted_tree import change_owner, discard_tree, occupied_bytes
from proctor.runner import enter as entering
from proctor.runner.lines import OutputLines
from proctor.support.logs import log

LimitReason = Literal["", "memory", "disk", "processes", "cpu"]

PORT, INTERNET_PORT = 8700, 8701
"""Of the loopback inside."""
INTERNET_SOCKET = "/run/proctor/outward"
WATCH_SECONDS = 0.5
DISK_SHARE = 10
"""Measuring folders takes at most one part in so many of the time, unless the disk fills meanwhile."""
FORK_BOMB_REFUSALS = 1_000
"""Who goes on starting processes after so many were refused will not stop by itself."""
LAST_LINES_SECONDS = 5.0
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
NO_SANDBOX = (
    "Runs need bubblewrap, and there is no `bwrap` on this machine; install it "
    "(`apt-get install bubblewrap`), or start with --allow-no-sandbox to "
    "play environments with all that this user may do."
)


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One process to be started behind walls."""

    run_id: str
    words: tuple[str, ...]
    """The command line inside."""
    folder: Path
    """The run's own: /workspace inside, kept over attempts."""
    variables: Mapping[str, str] = {}
    """Environment variables, secrets among them: no command line or file ever holds them."""
    stdin: bytes = b""
    """What the program reads on its standard input."""
    paths: tuple[str, ...] = ()
    """What is to be read inside, at the same place: a Venv's `paths`."""
    hidden: tuple[Path, ...] = ()
    """What must never be seen, even below `paths`: the server's data, other runs' folders."""
    socket: Path | None = None
    """Leads to the server; a `relay`. None: no way out at all."""
    outward: Path | None = None
    """Leads to the internet; an `outward` proxy. None: none is granted."""
    writable: Mapping[str, str] = {}
    """Further folders to write to, and where they lie inside."""
    limits: RunLimits = RunLimits()


class ProcessExit(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended, it and all it started."""

    code: int
    signal: int | None = None
    reason: LimitReason = ""
    """The limit that ended it."""
    last_words: tuple[str, ...] = ()
    """The last lines it printed."""


class SandboxedProcess:
    """A process behind walls."""

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
        """Its lines, as they come; to be read once. What nobody reads is left out, and holds nothing up."""
        return self._lines.__aiter__()

    async def wait(self) -> ProcessExit:
        return await asyncio.shield(self._leaving)

    async def end(self, grace_seconds: float = 10.0) -> ProcessExit:
        """Ask it to end; after a while make it."""
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
            code = KILLED_EXIT_CODE  # the kernel chose the sandbox's first process
        finally:
            watching.cancel()
            await asyncio.wait({watching})
            usage = self._group.usage()
            await asyncio.to_thread(self._group.remove)
            await self._lines.end(LAST_LINES_SECONDS)
            await asyncio.to_thread(discard_tree, self._scratch)
        words = tuple(self._lines.last)
        return ProcessExit(
            code=code,
            signal=code - 128 if code > 128 else None,
            reason=self._exceeded or find_exceeded_limit(code, usage, words),
            last_words=words,
        )

    async def _watch(self) -> None:
        """End the run when it is beyond a limit that the kernel does not hold it to."""
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
    """Start a process behind walls; without bubblewrap only if that is allowed, and then without them."""
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
    walls = SandboxConfig(
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
    python, further = find_interpreter(walls)
    walls = replace(walls, mounts=[*mounts, *further])
    script = inspect.getsource(forward)
    leads = []
    if spec.socket is not None:
        leads.append(Forward(PORT, str(spec.socket), python, script))
    if spec.outward is not None:
        leads.append(Forward(INTERNET_PORT, str(spec.outward), python, script, INTERNET_SOCKET))
    with input_descriptor(entry_input(spec, build_variables(spec, PORT))) as stdin:
        streams = Streams(stdin, printing, printing)
        return await start_sandboxed_command(walls, entry_command(python, spec), leads, streams, group.join)


async def start_unconfined(
    spec: ProcessSpec, user: SandboxUser, scratch: Path, group: ControlGroup, printing: int
) -> UnconfinedCommand:
    """For operators who trust every environment: a process group, and limits for each process."""
    port = free_port()
    words = entry_command(sys.executable, spec)
    if spec.socket is not None:
        lead = Forward(port, "", sys.executable, inspect.getsource(forward), str(spec.socket))
        words = [*forward_command(lead, user), *words]
    variables = {**build_variables(spec, port), "TMPDIR": str(scratch / "tmp")}
    with input_descriptor(entry_input(spec, variables)) as stdin:
        shell = UnconfinedLauncher(spec.folder, {}, spec.limits.per_process(group.watched))
        started = await shell.start(words, Streams(stdin, printing, printing), {})
    group.join(started.process.pid)
    return started


def entry_command(python: str, spec: ProcessSpec) -> list[str]:
    return [python, "-IS", "-c", inspect.getsource(entering), *spec.words]


def entry_input(spec: ProcessSpec, variables: Mapping[str, str]) -> bytes:
    return msgspec.json.encode(variables) + b"\n" + spec.stdin


def build_variables(spec: ProcessSpec, port: int) -> dict[str, str]:
    """The run's own variables, and how the server and, if it is granted, the internet are reached."""
    ways = {URL_VARIABLE: f"http://127.0.0.1:{port}"} if spec.socket is not None else {}
    if spec.outward is not None:
        ways |= dict.fromkeys(PROXIES, f"http://127.0.0.1:{INTERNET_PORT}")
        ways |= dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost")
    return {**spec.variables, **ways}


def find_exceeded_limit(code: int, usage: CgroupUsage, last_words: Sequence[str]) -> LimitReason:
    """Which limit the kernel has held a process to that ended badly."""
    if code == 0:
        return ""
    if usage.killed_for_memory or any(line.startswith("MemoryError") for line in last_words[-1:]):
        return "memory"
    if code == 128 + signal.SIGXCPU:
        return "cpu"
    if code == 128 + signal.SIGXFSZ:
        return "disk"
    return "processes" if usage.refused_processes else ""


def send_sigterm(started: SandboxedCommand | UnconfinedCommand) -> None:
    """SIGTERM for the program itself: the first process of a sandbox would not hear it."""
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


# What a run is given on disk


def make_scratch(spec: ProcessSpec, user: SandboxUser) -> Path:
    """Its /tmp, /dev/shm and the few files of /etc; hands the run's own folders over. Blocks."""
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
            folder.chmod(0o711)  # bubblewrap enters it as root without root's powers
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
    log.warning("There is no bubblewrap here: environments run with all that this user may do.")


def is_below(path: str, places: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(place) for place in places)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
