"""Run commands inside a sandbox, and be certain that nothing of them is left when they end.

Every command gets namespaces of its own. The first process in there is held by a descriptor, so that it can
be ended, and its end waited for, without ever meaning another process; when it is gone, so is all it started.
Knows nothing of rollouts or of what is run.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from proctor.contracts import HttpEndpoint
from proctor.errors import ConfigError, EnvError, InfraError
from proctor.isolation import forward
from proctor.isolation.bubblewrap import (
    MEGABYTE,
    CommandLimits,
    Forward,
    SandboxConfig,
    SandboxUser,
    build_bwrap_command,
    variable_arguments,
)
from proctor.isolation.gate import StartBarrier, input_descriptor

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
REQUIRED_PROGRAMS = ("prlimit", "setpriv")
KILLED_EXIT_CODE = 128 + signal.SIGKILL
"""What a shell says of a command that was killed."""
PROBE_SECONDS = 20.0
CHUNK_BYTES = 65_536
LONGEST_STATUS = 4_096
"""Of what bubblewrap says of a sandbox, the end."""
FIRST_OWN_UID, LAST_OWN_UID = 200_000, 2_000_000_000
FIRST_FEW_UID, LAST_FEW_UID = 20_000, 60_000
"""For a root whose machine, a container say, has only so many user ids."""


class Streams(NamedTuple):
    """Where a command reads and writes: descriptors, or what `subprocess` has instead."""

    stdin: int
    stdout: int
    stderr: int


class RunningCommand(Protocol):
    """A command that runs."""

    process: asyncio.subprocess.Process

    async def wait(self) -> int:
        """Its exit code, once it and all it started are gone."""

    async def end(self) -> None:
        """End it and all it started; returns when they are gone."""


class SandboxLauncher:
    """Starts commands behind walls."""

    def __init__(self, walls: SandboxConfig, held: Callable[[int], None] = lambda _: None) -> None:
        self.walls = walls
        self._held = held

    async def start(
        self,
        command: Sequence[str],
        streams: Streams,
        variables: Mapping[str, str],
        door: HttpEndpoint | None = None,
    ) -> SandboxedCommand:
        walls = replace(self.walls, variables={**self.walls.variables, **variables})
        leads: tuple[Forward, ...] = ()
        if door is not None and not walls.network:
            lead, mounts = build_forward(door, walls)
            leads = (lead,)
            walls = replace(walls, mounts=(*walls.mounts, *mounts))
        return await start_sandboxed_command(walls, command, leads, streams, self._held)


class SandboxedCommand:
    """A command in its sandbox."""

    def __init__(self, process: asyncio.subprocess.Process, pid: int, first: int, status: int) -> None:
        self.process = process
        self.pid = pid
        """Of the first process inside, as this machine counts."""
        self._first = first
        self._status = status
        self._was_ended = False
        self._leaving = asyncio.create_task(self._leave())

    async def wait(self) -> int:
        return await asyncio.shield(self._leaving)

    async def end(self) -> None:
        if not self._leaving.done():
            self._was_ended = True
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        await asyncio.wait({self._leaving})

    async def _leave(self) -> int:
        try:
            # The kernel says so after everything in the namespace has died.
            await wait_until_readable(self._first)
            told = await read_status(self._status)
            await self.process.wait()
        finally:
            os.close(self._first)
            os.close(self._status)
        code = exit_code(told)
        if code is None and not self._was_ended:
            raise InfraError(
                "a sandbox could not be made ready; `proctor` needs room for processes and mounts"
            )
        return KILLED_EXIT_CODE if code is None else code


async def start_sandboxed_command(
    walls: SandboxConfig,
    command: Sequence[str],
    leads: Sequence[Forward],
    streams: Streams,
    held: Callable[[int], None] = lambda _: None,
) -> SandboxedCommand:
    """`held` is given the id of the sandbox's first process before that has begun anything."""
    with ExitStack() as kept, ExitStack() as briefly:
        try:
            gate = StartBarrier(walls.scratch)
            briefly.callback(gate.close)
            status, their_status = os.pipe()
            kept.callback(os.close, status)
            with closing_descriptor(their_status):
                their_block, block = os.pipe()
                briefly.callback(os.close, block)
                with closing_descriptor(their_block):
                    process = await start_bubblewrap(
                        walls, command, leads, streams, PipeEnds(status, their_status, their_block), gate
                    )
        except (OSError, ValueError) as error:
            raise InfraError(f"a sandbox cannot be started: {error}") from error
        try:
            pid = parse_child_pid(await read_first_line(status))
            held(pid)
            first = os.pidfd_open(pid)
            kept.callback(os.close, first)
            os.write(block, b"\n")
            await wait_until_any_readable(gate.ready, first)
            gate.go()
        except BaseException:
            process.kill()
            await asyncio.shield(process.wait())
            raise
        kept.pop_all()
        return SandboxedCommand(process, pid, first, status)


class ExitStatus(msgspec.Struct, frozen=True, rename="kebab"):
    """The last line of bubblewrap's status."""

    exit_code: int


class PipeEnds(NamedTuple):
    """The ends of the pipes between us and bubblewrap that it is given."""

    told: int
    """Ours, where we read: with nobody to read, it would end where its child waits for it forever."""
    status: int
    block: int


async def start_bubblewrap(
    walls: SandboxConfig,
    command: Sequence[str],
    leads: Sequence[Forward],
    streams: Streams,
    ends: PipeEnds,
    gate: StartBarrier,
) -> asyncio.subprocess.Process:
    walls = replace(walls, limits=cap_to_own_limits(walls.limits))
    with input_descriptor(
        b"".join(os.fsencode(word) + b"\0" for word in variable_arguments(walls))
    ) as variables:
        words = build_bwrap_command(
            find_bubblewrap(),
            walls,
            command,
            status=ends.status,
            block=ends.block,
            variables=variables,
            kept=ends.told,
            gate=gate.folder,
            forwards=leads,
        )
        return await asyncio.create_subprocess_exec(
            *words,
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            env={},  # the first process inside is bubblewrap itself, and its variables can be read there
            pass_fds=(*ends, variables),
            start_new_session=True,
        )


@contextmanager
def closing_descriptor(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


async def read_first_line(status: int) -> bytes:
    told = b""
    while not told.endswith(b"\n"):
        await wait_until_readable(status)
        said = os.read(status, 4096)
        if not said:
            raise InfraError(
                "bubblewrap ended before it had made a sandbox; is the machine out of processes?"
            )
        told += said
    return told


async def read_status(status: int) -> bytes:
    """What bubblewrap says before it ends. Where a sandbox has a user namespace, what ran inside can write to
    the same pipe, so it is read until it is closed: in a full one bubblewrap could say nothing, and wait."""
    told = b""
    while True:
        await wait_until_readable(status)
        said = os.read(status, CHUNK_BYTES)
        if not said:
            return told
        told = (told + said)[-LONGEST_STATUS:]


def exit_code(told: bytes) -> int | None:
    """As bubblewrap told it: the last to write, whatever was written from inside."""
    _, brace, last = told.rpartition(b"{")
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(brace + last, type=ExitStatus).exit_code
    return None


def parse_child_pid(told: bytes) -> int:
    status: dict[str, Any] = msgspec.json.decode(told)
    return int(status["child-pid"])


async def wait_until_readable(descriptor: int) -> None:
    await wait_until_any_readable(descriptor)


async def wait_until_any_readable(*descriptors: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    for descriptor in descriptors:
        loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)


# The machine


def find_bubblewrap() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise ConfigError(
            "A workspace needs bubblewrap, and there is no `bwrap` on this machine; install it "
            "(`apt-get install bubblewrap`, `dnf install bubblewrap`)."
        )
    return found


async def check_sandbox(walls: SandboxConfig) -> None:
    """Raise if this machine makes no such sandbox."""
    find_bubblewrap()
    if missing := [
        name for name in REQUIRED_PROGRAMS if not shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
    ]:
        raise ConfigError(f"A workspace needs `{missing[0]}` in /usr/bin; install the package util-linux.")
    silent = Streams(subprocess.DEVNULL, subprocess.DEVNULL, subprocess.PIPE)
    with ExitStack() as briefly:
        gate = StartBarrier(walls.scratch)
        briefly.callback(gate.close)
        ends = PipeEnds(*os.pipe(), os.open(os.devnull, os.O_RDONLY))
        for descriptor in ends:
            briefly.callback(os.close, descriptor)
        gate.go()
        process = await start_bubblewrap(walls, ["true"], (), silent, ends, gate)
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                _, said = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            said = b"it does not answer"
    if process.returncode != 0:
        reason = said.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("bwrap: ")
        raise ConfigError(
            f"bubblewrap cannot make a sandbox here ({reason}); allow user namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap), or, in a "
            "container, add the capability SYS_ADMIN and an unconfined seccomp profile."
        )


def cap_to_own_limits(limits: CommandLimits) -> CommandLimits:
    """Nobody may be given more than we have ourselves: we may be in a sandbox too."""

    def least(ours: int, theirs: int | None, unit: int = 1) -> int | None:
        most = resource.getrlimit(ours)[1]
        return theirs if most == resource.RLIM_INFINITY else min(most // unit, theirs or most // unit)

    return replace(
        limits,
        memory_mb=least(resource.RLIMIT_AS, limits.memory_mb, MEGABYTE),
        processes=least(resource.RLIMIT_NPROC, limits.processes),
        file_mb=least(resource.RLIMIT_FSIZE, limits.file_mb, MEGABYTE),
        cpu_seconds=limits.cpu_seconds,
    )


@functools.cache
def system_folders() -> dict[str, str | None]:
    """The folders with programs, and where those that are links point to."""
    found = (Path(path) for path in SYSTEM_FOLDERS if os.path.lexists(path))
    return {str(path): str(path.readlink()) if path.is_symlink() else None for path in found}


def choose_sandbox_user() -> SandboxUser:
    """Root steps down to a user id that nobody else has: without that, a command could still write what only
    root may, and its processes could not be counted."""
    if os.geteuid() != 0:
        return SandboxUser()
    few = has_few_user_ids()
    own = random.randint(FIRST_FEW_UID, LAST_FEW_UID) if few else random.randint(FIRST_OWN_UID, LAST_OWN_UID)
    return SandboxUser(own, own, steps_down=True)


@functools.cache
def has_few_user_ids() -> bool:
    spans = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return max(int(first) + int(count) for first, _, count in spans) <= LAST_OWN_UID


def build_forward(door: HttpEndpoint, walls: SandboxConfig) -> tuple[Forward, list[str]]:
    """How a door is reached from inside, and what must be seen there for it."""
    python, mounts = find_interpreter(walls)
    port = urlsplit(door.url).port
    if port is None:
        raise EnvError(f"the door {door.url!r} names no port")
    return Forward(port, door.socket, python, inspect.getsource(forward)), mounts


def find_interpreter(walls: SandboxConfig) -> tuple[str, list[str]]:
    """A Python for use inside: the machine's own, or else the one that runs us."""
    if Path("/usr/bin/python3").exists():
        return "/usr/bin/python3", []
    prefix = Path(sys.base_prefix).resolve()
    python = prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not python.exists():
        raise EnvError(
            "a command in a workspace needs Python to reach the model; install python3 in /usr/bin"
        )
    is_seen = any(prefix.is_relative_to(place) for place in (*walls.system, *walls.mounts))
    return str(python), [] if is_seen else [str(prefix)]
