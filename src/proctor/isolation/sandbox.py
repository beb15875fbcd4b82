"""Run commands inside a sandbox, and guarantee that nothing of them is left when they end.

Every command gets namespaces of its own. A file descriptor refers to the first process inside, so that we can
kill it and wait for its end without ever hitting another process; when it is gone, so is everything it
started. Knows nothing of rollouts or of what is run.
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
from proctor.isolation.command_line import (
    MEGABYTE,
    CommandLimits,
    Forward,
    SandboxConfig,
    SandboxUser,
    build_bwrap_command,
    variable_arguments,
)
from proctor.isolation.start_barrier import StartBarrier
from proctor.isolation.streams import Streams, input_descriptor
from proctor.support import sandbox_bridge

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
REQUIRED_PROGRAMS = ("prlimit", "setpriv")
KILLED_EXIT_CODE = 128 + signal.SIGKILL
"""The exit code that a shell reports for a command that was killed."""
PROBE_SECONDS = 20.0
CHUNK_BYTES = 65_536
LONGEST_STATUS = 4_096
"""How much of bubblewrap's own messages is kept: the end."""
FIRST_OWN_UID, LAST_OWN_UID = 200_000, 2_000_000_000
FIRST_FEW_UID, LAST_FEW_UID = 20_000, 60_000
"""For root on a machine with few user ids, such as a container."""


class RunningCommand(Protocol):
    """A running command."""

    process: asyncio.subprocess.Process

    async def wait(self) -> int:
        """Its exit code, once it and all it started are gone."""

    async def end(self) -> None:
        """End it and all it started; returns when they are gone."""


class SandboxLauncher:
    """Starts commands in a sandbox."""

    def __init__(
        self, config: SandboxConfig, on_first_process: Callable[[int], None] = lambda _: None
    ) -> None:
        self.config = config
        self._on_first_process = on_first_process

    async def start(
        self,
        command: Sequence[str],
        streams: Streams,
        variables: Mapping[str, str],
        endpoint: HttpEndpoint | None = None,
    ) -> SandboxedCommand:
        config = replace(self.config, variables={**self.config.variables, **variables})
        forwards: tuple[Forward, ...] = ()
        if endpoint is not None and not config.network:
            to_endpoint, mounts = build_forward(endpoint, config)
            forwards = (to_endpoint,)
            config = replace(config, mounts=(*config.mounts, *mounts))
        return await start_sandboxed_command(config, command, forwards, streams, self._on_first_process)


class SandboxedCommand:
    """A command in its sandbox."""

    def __init__(self, process: asyncio.subprocess.Process, pid: int, first: int, status: int) -> None:
        self.process = process
        self.pid = pid
        """The first process inside, by its id on this machine."""
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
            # Reported only after everything in the namespace has died.
            await wait_until_readable(self._first)
            report = await read_status(self._status)
            await self.process.wait()
        finally:
            os.close(self._first)
            os.close(self._status)
        code = exit_code(report)
        if code is None and not self._was_ended:
            raise InfraError(
                "the sandbox could not be set up; check the machine's limits on processes and mounts"
            )
        return KILLED_EXIT_CODE if code is None else code


async def start_sandboxed_command(
    config: SandboxConfig,
    command: Sequence[str],
    forwards: Sequence[Forward],
    streams: Streams,
    on_first_process: Callable[[int], None] = lambda _: None,
) -> SandboxedCommand:
    """`on_first_process` gets the id of the sandbox's first process before that has started anything."""
    with ExitStack() as on_failure, ExitStack() as on_exit:
        try:
            barrier = StartBarrier(config.scratch)
            on_exit.callback(barrier.close)
            status, their_status = os.pipe()
            on_failure.callback(os.close, status)
            with closing_descriptor(their_status):
                their_block, block = os.pipe()
                on_exit.callback(os.close, block)
                with closing_descriptor(their_block):
                    process = await start_bubblewrap(
                        config,
                        command,
                        forwards,
                        streams,
                        PipeEnds(status, their_status, their_block),
                        barrier,
                    )
        except (OSError, ValueError) as error:
            raise InfraError(f"cannot start a sandbox: {error}") from error
        try:
            pid = parse_child_pid(await read_first_line(status))
            on_first_process(pid)
            first = os.pidfd_open(pid)
            on_failure.callback(os.close, first)
            os.write(block, b"\n")
            await wait_until_any_readable(barrier.ready, first)
            barrier.go()
        except BaseException:
            process.kill()
            await asyncio.shield(process.wait())
            raise
        on_failure.pop_all()
        return SandboxedCommand(process, pid, first, status)


class ExitStatus(msgspec.Struct, frozen=True, rename="kebab"):
    """The last line of bubblewrap's status."""

    exit_code: int


class PipeEnds(NamedTuple):
    """The ends of the pipes between us and bubblewrap that bubblewrap inherits."""

    keep_open: int
    """Our reading end: without a reader, bubblewrap would die while its child waits for it forever."""
    status: int
    block: int


async def start_bubblewrap(
    config: SandboxConfig,
    command: Sequence[str],
    forwards: Sequence[Forward],
    streams: Streams,
    ends: PipeEnds,
    barrier: StartBarrier,
) -> asyncio.subprocess.Process:
    config = replace(config, limits=cap_to_own_limits(config.limits))
    with input_descriptor(
        b"".join(os.fsencode(word) + b"\0" for word in variable_arguments(config))
    ) as variables:
        argv = build_bwrap_command(
            find_bubblewrap(),
            config,
            command,
            status=ends.status,
            block=ends.block,
            variables=variables,
            keep_open=ends.keep_open,
            barrier=barrier.folder,
            forwards=forwards,
        )
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            env={},  # the first process inside is bubblewrap itself, whose variables are readable there
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
    status_line = b""
    while not status_line.endswith(b"\n"):
        await wait_until_readable(status)
        chunk = os.read(status, 4096)
        if not chunk:
            raise InfraError(
                "bubblewrap ended before it created the sandbox; is the machine out of processes?"
            )
        status_line += chunk
    return status_line


async def read_status(status: int) -> bytes:
    """What bubblewrap says before it ends. Where a sandbox has a user namespace, what ran inside can write to
    the same pipe, so it is read until it is closed: in a full one bubblewrap could say nothing, and wait."""
    report = b""
    while True:
        await wait_until_readable(status)
        chunk = os.read(status, CHUNK_BYTES)
        if not chunk:
            return report
        report = (report + chunk)[-LONGEST_STATUS:]


def exit_code(report: bytes) -> int | None:
    """As bubblewrap told it: the last to write, whatever was written from inside."""
    _, brace, last = report.rpartition(b"{")
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(brace + last, type=ExitStatus).exit_code
    return None


def parse_child_pid(status_line: bytes) -> int:
    status: dict[str, Any] = msgspec.json.decode(status_line)
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
            "Workspaces need bubblewrap, but `bwrap` is not installed; install it "
            "(`apt-get install bubblewrap`, `dnf install bubblewrap`)."
        )
    return found


async def check_sandbox(config: SandboxConfig) -> None:
    """Raise a ConfigError if this machine cannot create such a sandbox."""
    find_bubblewrap()
    if missing := [
        name for name in REQUIRED_PROGRAMS if not shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
    ]:
        raise ConfigError(f"Workspaces need `{missing[0]}` in /usr/bin; install the package util-linux.")
    silent = Streams(subprocess.DEVNULL, subprocess.DEVNULL, subprocess.PIPE)
    with ExitStack() as on_exit:
        barrier = StartBarrier(config.scratch)
        on_exit.callback(barrier.close)
        ends = PipeEnds(*os.pipe(), os.open(os.devnull, os.O_RDONLY))
        for descriptor in ends:
            on_exit.callback(os.close, descriptor)
        barrier.go()
        process = await start_bubblewrap(config, ["true"], (), silent, ends, barrier)
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                _, errors = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            errors = b"it does not answer"
    if process.returncode != 0:
        reason = errors.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("bwrap: ")
        raise ConfigError(
            f"bubblewrap cannot create a sandbox here ({reason}); allow user namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap), or, in a "
            "container, add the capability SYS_ADMIN and an unconfined seccomp profile."
        )


def cap_to_own_limits(limits: CommandLimits) -> CommandLimits:
    """Never grant more than our own limits: we may be in a sandbox ourselves."""

    def least(ours: int, theirs: int | None, unit: int = 1) -> int | None:
        most = resource.getrlimit(ours)[1]
        return theirs if most == resource.RLIM_INFINITY else min(most // unit, theirs or most // unit)

    return replace(
        limits,
        memory_mb=least(resource.RLIMIT_AS, limits.memory_mb, MEGABYTE),
        data_mb=least(resource.RLIMIT_DATA, limits.data_mb, MEGABYTE),
        processes=least(resource.RLIMIT_NPROC, limits.processes),
        file_mb=least(resource.RLIMIT_FSIZE, limits.file_mb, MEGABYTE),
        cpu_seconds=limits.cpu_seconds,
    )


@functools.cache
def system_folders() -> dict[str, str | None]:
    """The program folders, and the targets of those that are links."""
    found = (Path(path) for path in SYSTEM_FOLDERS if os.path.lexists(path))
    return {str(path): str(path.readlink()) if path.is_symlink() else None for path in found}


def choose_sandbox_user() -> SandboxUser:
    """Root gets a user id that no other sandbox has: otherwise a command could still write what only root
    may, and its processes could not be counted."""
    if os.geteuid() != 0:
        return SandboxUser()
    few = has_few_user_ids()
    own = random.randint(FIRST_FEW_UID, LAST_FEW_UID) if few else random.randint(FIRST_OWN_UID, LAST_OWN_UID)
    return SandboxUser(own, own, steps_down=True)


@functools.cache
def has_few_user_ids() -> bool:
    spans = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return max(int(first) + int(count) for first, _, count in spans) <= LAST_OWN_UID


def build_forward(endpoint: HttpEndpoint, config: SandboxConfig) -> tuple[Forward, list[str]]:
    """The forward to an endpoint from inside, and the mounts that it needs."""
    python, mounts = find_interpreter(config)
    port = urlsplit(endpoint.url).port
    if port is None:
        raise EnvError(f"the endpoint {endpoint.url!r} has no port")
    return Forward(port, endpoint.socket, python, inspect.getsource(sandbox_bridge)), mounts


def find_interpreter(config: SandboxConfig) -> tuple[str, list[str]]:
    """A Python for use inside: the machine's own, or else the running one."""
    if Path("/usr/bin/python3").exists():
        return "/usr/bin/python3", []
    prefix = Path(sys.base_prefix).resolve()
    python = prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not python.exists():
        raise EnvError("commands in a workspace need Python to reach the model; install python3 in /usr/bin")
    is_visible = any(prefix.is_relative_to(folder) for folder in (*config.system, *config.mounts))
    return str(python), [] if is_visible else [str(prefix)]
