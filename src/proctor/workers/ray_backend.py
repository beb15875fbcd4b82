"""Workers on the nodes of a Ray cluster.

Ray only places: it starts a parent process on a node, which starts the worker. Everything else goes over a
link of our own (`link.py`), whose end is what tells that a worker is gone; Ray may be out of reach meanwhile.
Knows nothing of what is played.
"""

from __future__ import annotations

import asyncio
import platform
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import msgspec

from proctor.cluster.address import ClusterAddress
from proctor.cluster.connect import ClusterError, ProcessLostError, connect
from proctor.cluster.launcher import ProcessLauncher
from proctor.cluster.messages import ClusterNode, Connected, ProcessEnd, StartedProcess
from proctor.cluster.options import WorkerOptions, describe_need, has_room, needs
from proctor.config.api_addresses import is_on_this_machine
from proctor.config.endpoints import Endpoint
from proctor.errors import ConfigError, EnvError
from proctor.support.logs import log
from proctor.support.processes import describe_exit, summarize_output
from proctor.workers.backend import WorkerExit
from proctor.workers.frames import (
    BundlePiece,
    FrameWriter,
    MissingBundles,
    StartWorker,
    Unpack,
    Unpacked,
    read_frame,
)
from proctor.workers.link import ExpectedWorker, Link
from proctor.workers.node_files import NodeFiles, bundle_node_files, localize
from proctor.workers.remote_process import WorkerGreeting, WorkerInstructions

MODULE = "proctor.workers.remote_process"
OWN_VERSION = version("proctor")
LOOK_SECONDS = 0.5
STARTING_SECONDS = 60.0
"""For a placed worker to import what it needs and greet."""
ARRIVING_SECONDS = 15.0
UNPACKING_SECONDS = 120.0
"""For each piece of a bundle."""
ABANDONED_SECONDS = 120.0
"""How long a run whose workers are all gone waits for a node."""
LEAVING_SECONDS = 5.0


class WorkerLauncher(ProcessLauncher, Protocol):
    """A ProcessLauncher that also passes lines on, to find out what became of a worker."""

    connected: Connected

    @property
    def is_over(self) -> bool: ...
    async def is_placed(self, key: str) -> bool: ...
    async def send_line(self, key: str, line: str) -> None: ...


Connect = Callable[[ClusterAddress], AbstractAsyncContextManager[WorkerLauncher]]


class RayBackend:
    """The nodes of a cluster."""

    starts_with_some = True

    def __init__(
        self,
        address: ClusterAddress,
        options: WorkerOptions,
        start: StartWorker,
        connect_to: Connect | None = None,
    ) -> None:
        self.address = address
        self.options = options
        self.placement = options.to_placement()
        self.open_processes = 0
        self.launched = 0
        """Workers that this run has requested and not released."""
        self.node_files: NodeFiles
        self.link: Link
        self.start = start
        self._connect: Connect = connect_to or connect
        self._launcher: WorkerLauncher | None = None
        self._connecting = asyncio.Lock()
        self._leaving = AsyncExitStack()
        self._killing: set[asyncio.Task[None]] = set()
        self._has_played = False
        self._has_logged_wait = False

    async def __aenter__(self) -> RayBackend:
        async with AsyncExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proctor-bundles-")))
            files, variables = self.options.files, self.options.variables
            self.node_files = await asyncio.to_thread(
                lambda: bundle_node_files(self.start, scratch, files=files, variables=variables)
            )
            self.link = Link()
            stack.push_async_callback(self.link.close)
            self._leaving = stack
            launcher = await self.reach()
            await self.link.open(*self.options.listen_at(launcher.connected.host))
            self._leaving = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._killing:
            await asyncio.wait(self._killing, timeout=LEAVING_SECONDS)
        await self._leaving.aclose()

    async def reach(self) -> WorkerLauncher:
        """The cluster; connected to again, if the connection has ended."""
        async with self._connecting:
            if self._launcher is None or self._launcher.is_over:
                self._launcher = await self._leaving.enter_async_context(self._connect(self.address))
            return self._launcher

    def create_process(self, number: int, log_file: Path) -> RayProcess:
        return RayProcess(self, number, log_file)

    async def wait_for_room(self, key: str, launching: asyncio.Task[StartedProcess]) -> StartedProcess:
        """Until the process runs; as long as others play, it may wait for a node to have room or to join."""
        launcher = await self.reach()
        began_at = alone_since = time.monotonic()
        while not launching.done():
            await asyncio.wait([launching], timeout=LOOK_SECONDS)
            now = time.monotonic()
            if self.open_processes:
                alone_since = now
            if launching.done() or now - began_at < self.options.room_seconds:
                continue
            if await launcher.is_placed(key):
                break
            nodes = [node for node in await launcher.nodes() if node.is_alive]
            if self._is_being_started(nodes):
                if now - alone_since >= STARTING_SECONDS:
                    raise EnvError(f"{self.address} has not started a worker for {STARTING_SECONDS:g} s")
                continue
            patience = ABANDONED_SECONDS if self._has_played else self.options.room_seconds
            if now - alone_since >= patience:
                raise ConfigError(self._describe_lack(nodes))
            if not self._has_logged_wait:
                self._has_logged_wait = True
                log.warning("%s Other workers play meanwhile.", self._describe_lack(nodes))
        return await launching

    def _is_being_started(self, nodes: Sequence[ClusterNode]) -> bool:
        """Whether only this run uses what it asked for: then a worker lacks no room, and Ray is slow."""
        used_by_others = any(
            sum(node.total.get(name, 0.0) - node.free.get(name, 0.0) for node in nodes)
            > amount * self.launched
            for name, amount in needs(self.placement).items()
        )
        return not used_by_others and any(has_room(node.total, self.placement) for node in nodes)

    def note_open(self) -> None:
        self.open_processes += 1
        self._has_played = True

    def _describe_lack(self, nodes: Sequence[ClusterNode]) -> str:
        need = describe_need(self.placement)
        if any(has_room(node.total, self.placement) for node in nodes):
            free = sum(node.free.get("CPU", 0.0) for node in nodes)
            return (
                f"No node of {self.address} has room for a worker with {need}: others use all but {free:g} "
                f"CPUs of its {len(nodes)} nodes. Wait for them, or add a node."
            )
        largest = max((node.total.get("CPU", 0.0) for node in nodes), default=0.0)
        return (
            f"No node of {self.address} is large enough for a worker with {need}: the largest of "
            f"{len(nodes)} has {largest:g} CPUs (see `proctor cluster status`). Ask for less with --on-args."
        )

    def kill_later(self, key: str) -> None:
        """End a process without waiting for it."""
        if self._launcher is not None and not self._launcher.is_over:
            task = asyncio.create_task(kill_quietly(self._launcher, key))
            self._killing.add(task)
            task.add_done_callback(self._killing.discard)


class RayProcess:
    """A worker process whose parent is an actor."""

    def __init__(self, backend: RayBackend, number: int, log_file: Path) -> None:
        self.backend = backend
        self.log_file = log_file
        self.name = "not placed yet"
        self._key = f"{number}-{secrets.token_hex(4)}"
        self._ending: asyncio.Task[ProcessEnd] | None = None
        self._unpacked: Unpacked | None = None
        self._is_launched = False

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        launcher = await self.backend.reach()
        expected = self.backend.link.expect()
        try:
            await self._start(launcher, expected)
            reader, writer = await expected.wait_for_it(ARRIVING_SECONDS)
            self._unpacked = await send_node_files(self.backend.node_files, reader, writer)
        except BaseException:
            self.backend.link.forget(expected)
            self.kill()
            raise
        self.backend.note_open()
        self._ending = asyncio.create_task(launcher.wait_for_end(self._key))
        self._ending.add_done_callback(self._note_end)
        return reader, writer

    async def _start(self, launcher: WorkerLauncher, expected: ExpectedWorker) -> None:
        link = self.backend.link
        instructions = WorkerInstructions(
            host=link.host, port=link.port, certificate=link.certificate, token=expected.token
        )
        line = msgspec.json.encode(instructions).decode()
        self.backend.launched += 1
        self._is_launched = True
        launching = asyncio.create_task(
            launcher.launch(
                self._key, MODULE, line, self.backend.placement, greeting_seconds=STARTING_SECONDS
            )
        )
        try:
            started = await self.backend.wait_for_room(self._key, launching)
        finally:
            launching.cancel()
        self.name = f"process {started.pid} on {started.host}"
        expected.pin(check_greeting(started).certificate)
        if started.host != launcher.connected.host:
            refuse_unreachable_model(self.backend.start.endpoint, started.host)
        await launcher.send_line(self._key, "go")

    def localize(self, start: StartWorker) -> StartWorker:
        assert self._unpacked is not None
        return localize(start, self.backend.node_files, self._unpacked)

    @property
    def is_over(self) -> bool:
        """Only the process's own end counts: a parent that is out of reach may be back soon."""
        ending = self._ending
        return ending is not None and ending.done() and not ending.cancelled() and ending.exception() is None

    async def wait_for_end(self, seconds: float) -> WorkerExit:
        if self._ending is None:
            self.kill()
            return WorkerExit("was never opened", by_itself=False)
        await asyncio.wait([self._ending], timeout=seconds)
        self.kill()
        if not self._ending.done():
            return WorkerExit("is out of reach", by_itself=False)
        try:
            end = self._ending.result()
        except ProcessLostError as error:
            return WorkerExit(f"was lost by the cluster ({error})", by_itself=False)
        except (ClusterError, asyncio.CancelledError):
            return WorkerExit("is out of reach", by_itself=False)
        if end.last_words:
            await asyncio.to_thread(self.log_file.write_text, end.last_words)
        return WorkerExit(describe_exit(end.code), by_itself=end.code >= 0)

    def kill(self) -> None:
        self.backend.kill_later(self._key)
        self.backend.launched -= self._is_launched
        self._is_launched = False

    def _note_end(self, ending: asyncio.Task[ProcessEnd]) -> None:
        self.backend.open_processes -= 1
        if not ending.cancelled():
            ending.exception()  # retrieved, in case no caller asks how it ended


async def kill_quietly(launcher: WorkerLauncher, key: str) -> None:
    try:
        await launcher.kill(key)
    except ClusterError as error:
        log.debug("process %s: %s", key, error)


def check_greeting(started: StartedProcess) -> WorkerGreeting:
    """What a worker says about itself; ConfigError if it cannot work with this run."""
    where = f"node {started.host}"
    if not started.hello:
        if "No module named 'proctor" in started.last_words:
            raise ConfigError(
                f"Proctor is not installed for Ray's Python on {where}; install it there with "
                f"`pip install 'proctor[ray]=={OWN_VERSION}'`."
            )
        printed = summarize_output(started.last_words.splitlines())
        how = "did not greet in time" if started.code is None else describe_exit(started.code)
        raise EnvError(f"The worker on {where} {how}" + (f": {printed}" if printed else ""))
    greeting = msgspec.json.decode(started.hello, type=WorkerGreeting)
    if greeting.proctor != OWN_VERSION:
        raise ConfigError(
            f"Proctor is {greeting.proctor} on {where} and {OWN_VERSION} here; install the same on both."
        )
    if minor(greeting.python) != minor(platform.python_version()):
        raise ConfigError(
            f"Python is {greeting.python} on {where} and {platform.python_version()} here; use the same "
            f"minor version on both."
        )
    return greeting


def minor(version: str) -> list[str]:
    return version.split(".")[:2]


def refuse_unreachable_model(endpoint: Endpoint, host: str) -> None:
    local = next((each.url for each in (endpoint, *endpoint.replicas) if is_on_this_machine(each.url)), None)
    if local is not None:
        raise ConfigError(
            f"The model is at {local}, which is another machine on node {host}; give an address that every "
            f"node reaches (-b)."
        )


async def send_node_files(
    node_files: NodeFiles, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Unpacked:
    """Send what the worker's machine lacks; its answer says where everything is."""
    sender = FrameWriter(writer)
    bundles = {each.bundle.digest: each.bundle for each in node_files.bundled}
    shown = [
        (each.bundle.digest, inner, outer)
        for each in node_files.bundled
        for outer, inner in each.shown.items()
    ]
    try:
        sender.send(Unpack(bundles=list(bundles), shown=shown, variables=node_files.variables))
        async with asyncio.timeout(UNPACKING_SECONDS):
            missing = await read_frame(reader)
        if not isinstance(missing, MissingBundles):
            raise EnvError("it hung up before it had its files")
        for digest in missing.digests:
            for piece in bundles[digest].pieces():
                sender.send(BundlePiece(piece))
                sender.flush()
                async with asyncio.timeout(UNPACKING_SECONDS):
                    await writer.drain()
            sender.send(BundlePiece(b""))
        async with asyncio.timeout(UNPACKING_SECONDS):
            unpacked = await read_frame(reader)
    except TimeoutError:
        raise EnvError(f"it took no files for {UNPACKING_SECONDS:g} s") from None
    except OSError as error:
        raise EnvError(f"the link to it broke: {error}") from error
    if not isinstance(unpacked, Unpacked):
        raise EnvError("it hung up before it had its files")
    return unpacked
