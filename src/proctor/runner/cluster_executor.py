"""Play attempts on the nodes of a cluster.

Each attempt is a process on a node, under a parent that the cluster knows by the attempt's name and that
outlives this host. The cluster only places it: the node renews the lease, reports and stops by speaking to
the server. This host renews the lease until the node does, and reports an attempt whose process the cluster
says is gone, which the server would find out later by itself. Knows nothing of how a run is played.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, Protocol

import msgspec

from proctor.api.runner import HostAttemptId, Lease, LostRun, PlacedAttempts, RunAssignment
from proctor.api.runs import Cause, CauseCode
from proctor.client.connection import ServerConnection, ServerError
from proctor.cluster.address import ClusterAddress, parse_address
from proctor.cluster.connect import ClusterError, ProcessLostError, connect
from proctor.cluster.launcher import ProcessLauncher
from proctor.cluster.messages import ClusterNode, Placement
from proctor.errors import ConfigError
from proctor.isolation.command_line import MEGABYTE
from proctor.runner.cluster_nodes import NodeList, find_greeting_problems
from proctor.runner.host_settings import ClusterSettings, HostSettings
from proctor.runner.lease import LeaseRenewal
from proctor.runner.loss_report import LossReport
from proctor.runner.node_messages import NodeRequest
from proctor.support.logs import log
from proctor.support.processes import describe_exit, summarize_output

MODULE = "proctor.runner.on_node"
ATTEMPT_NAME = re.compile(r"(?P<run>run-[0-9a-f]+)-(?P<attempt>[0-9]{1,9})")
"""Others on the cluster may choose any name; a number beyond this is no attempt's."""
LOOK_SECONDS = 1.0
PLACED_LOOK_SECONDS = 5.0
PAUSE_SECONDS = 2.0
GREETING_SECONDS = 60.0
PLACING_SECONDS = 120.0
"""A node that looked free may have been filled by others meanwhile."""
STALE_SECONDS = 20.0
"""How long an attempt that is over may take to end by itself."""


class AttemptLauncher(ProcessLauncher, Protocol):
    """A ProcessLauncher that finds processes again by their names."""

    async def names(self) -> list[str]: ...
    async def find(self, key: str, name: str) -> bool: ...


Connect = Callable[[ClusterAddress], AbstractAsyncContextManager[AttemptLauncher]]


class NotPlacedError(Exception):
    """No node plays the attempt."""


class ClusterExecutor:
    """Places attempts on nodes, and watches them."""

    delegates = True
    outlives_host = True

    def __init__(
        self,
        host: str,
        settings: HostSettings,
        cluster: ClusterSettings,
        server: ServerConnection,
        connect: Connect = connect,
    ) -> None:
        self.host = host
        self.settings = settings
        self.cluster = cluster
        self.server = server
        self.nodes = NodeList(
            Placement(
                cpus=cluster.cpus,
                gpus=cluster.gpus,
                memory=settings.limits.memory_mb * MEGABYTE,
                resources=cluster.resources,
            )
        )
        self._connect = connect
        self._connection: AttemptLauncher | None = None
        self._is_connected = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Checks of nodes, and attempts that an earlier host placed, by name."""
        self._watched: set[str] = set()
        self._over_since: dict[str, float] = {}

    def has_room(self, playing: int) -> bool:
        others = len(self._watched) - playing
        return (
            self._connection is not None
            and playing + max(others, 0) < self.settings.at_once
            and self.nodes.choose() is not None
        )

    async def run(self) -> None:
        """Stay connected. A cluster that cannot be reached at the start is an error; later it is awaited."""
        address = parse_address(self.cluster.address)
        has_been_there = False
        try:
            while True:
                try:
                    async with self._connect(address) as connection:
                        log.info("Connected to the cluster %s.", address)
                        has_been_there = True
                        await self._keep_up(connection)
                except ConfigError as error:
                    if not has_been_there:
                        raise
                    log.warning("%s Retrying; what plays there continues.", error)
                except ClusterError as error:
                    log.warning(
                        "The cluster %s: %s. Connecting again; what plays there continues.", address, error
                    )
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            for task in self._tasks.values():
                task.cancel()

    async def _keep_up(self, connection: AttemptLauncher) -> None:
        """Follow the nodes and the attempts on them, until the connection fails."""
        look_at = 0.0
        try:
            while True:
                for node in self.nodes.update(await connection.nodes()):
                    self._start_task(f"check-{node.id}", partial(self._check, connection, node))
                self._connection = connection
                self._is_connected.set()
                if time.monotonic() >= look_at:
                    await self._look_for_placed(connection)
                    look_at = time.monotonic() + PLACED_LOOK_SECONDS
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._connection = None
            self._is_connected.clear()

    def _start_task(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if name not in self._tasks:
            task = self._tasks[name] = asyncio.create_task(work())
            task.add_done_callback(lambda _: self._tasks.pop(name, None))

    # Nodes

    async def _check(self, connection: AttemptLauncher, node: ClusterNode) -> None:
        key = f"check-{node.id}"
        placement = Placement(cpus=0, node=node.id)
        try:
            started = await connection.launch(
                key, MODULE, self._encode_request(node, None), placement, greeting_seconds=GREETING_SECONDS
            )
            self.nodes.record(node, find_greeting_problems(started))
        except ClusterError as error:
            self.nodes.record(node, [f"Nothing can be started there: {str(error).rstrip('.')}."])
        finally:
            await kill_quietly(connection, key)

    def _encode_request(self, node: ClusterNode, assignment: RunAssignment | None) -> str:
        request = NodeRequest(
            url=self.cluster.url,
            node_name=node.name,
            data=self.cluster.node_data,
            limits=self.settings.limits,
            allow_no_sandbox=self.settings.allow_no_sandbox,
            allow_no_control_groups=self.cluster.allow_no_control_groups,
            direct_hosts=self.settings.direct_hosts,
            assignment=assignment,
        )
        return msgspec.json.encode(request).decode()

    # Attempts of this host

    async def play(self, assignment: RunAssignment) -> None:
        """Place an attempt and watch it. If cancelled, it plays on."""
        attempt = HostAttemptId(assignment.run_id, assignment.attempt)
        name = name_attempt(attempt)
        self._watched.add(name)
        try:
            try:
                await self._place(assignment, name)
            except NotPlacedError as error:
                await self._report_lost(attempt, "internal", str(error), blameless=True)
            else:
                await self._watch(attempt)
        finally:
            self._watched.discard(name)

    async def _place(self, assignment: RunAssignment, name: str) -> None:
        """Until the node has greeted and renews the lease itself."""
        stopped = asyncio.Event()

        async def obey(lease: Lease) -> None:
            if lease.stop or lease.lost:
                stopped.set()

        renewal = LeaseRenewal(self.server, self.host, assignment, obey)
        launching = asyncio.create_task(self._launch(assignment, name))
        beside = [asyncio.create_task(renewal.run()), asyncio.create_task(stopped.wait())]
        try:
            await asyncio.wait(
                {launching, beside[1]}, timeout=PLACING_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if not launching.done():
                await self._kill(name)
                why = "The run was stopped" if stopped.is_set() else "No node had room for the run in time"
                raise NotPlacedError(f"{why} before it began.")
            launching.result()
        finally:
            for task in (launching, *beside):
                task.cancel()

    async def _launch(self, assignment: RunAssignment, name: str) -> None:
        connection, node = self._connection, self.nodes.choose()
        if connection is None or node is None:
            raise NotPlacedError("No node of the cluster has room for the run any more.")
        self.nodes.reserve(node, name)
        placement = msgspec.structs.replace(self.nodes.need, node=node.id)
        line = self._encode_request(node, assignment)
        try:
            started = await connection.launch(
                name, MODULE, line, placement, greeting_seconds=GREETING_SECONDS, name=name
            )
        except ClusterError as error:
            await kill_quietly(connection, name)
            raise NotPlacedError(
                f"Node {node.name} could not start the run: {str(error).rstrip('.')}."
            ) from error
        finally:
            self.nodes.settle(node, name)
        problems = find_greeting_problems(started)
        if problems:
            self.nodes.record(node, problems)
            await kill_quietly(connection, name)
            raise NotPlacedError(f"Node {node.name} cannot play runs: {' '.join(problems)}")
        log.info("%s, attempt %d, plays on node %s.", assignment.run_id, assignment.attempt, node.name)

    async def _watch(self, attempt: HostAttemptId) -> None:
        """Until the cluster says that it is gone; then the server must know."""
        name = name_attempt(attempt)
        while True:
            await self._is_connected.wait()
            connection = self._connection
            if connection is None:
                continue
            try:
                end = await connection.wait_for_end(name) if await connection.find(name, name) else None
            except ProcessLostError as error:
                log.warning("%s: the cluster has lost it: %s", name, error)
                end = None
            except ClusterError:  # it may live all the same
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            await kill_quietly(connection, name)
            break
        if end is None:
            message = "The cluster has lost the node or the process that played the run."
            await self._report_lost(attempt, "crashed", message, blameless=True)
        else:
            # One that ended well has reported everything itself, and the server ignores this.
            if end.code and (printed := summarize_output(end.last_words.splitlines())):
                log.warning("%s: the last output of its process: %s", name, printed)
            message = f"The process that played the run on its node {describe_exit(end.code)}."
            await self._report_lost(attempt, "crashed", message, blameless=False)

    async def _report_lost(
        self, attempt: HostAttemptId, code: CauseCode, message: str, *, blameless: bool
    ) -> None:
        lost = LostRun(Cause(code=code, message=message), blameless=blameless)
        await LossReport(host=self.host, attempt=attempt, lost=lost).send(self.server)

    async def _kill(self, name: str) -> None:
        if self._connection is not None:
            await kill_quietly(self._connection, name)

    # Attempts that an earlier host placed

    async def _look_for_placed(self, connection: AttemptLauncher) -> None:
        """Watch attempts that play already; end those that are over and have not ended by themselves."""
        placed = [attempt for name in await connection.names() if (attempt := parse_attempt(name))]
        over = await self._find_over(placed)
        if over is None:
            return
        for attempt in over:
            name = name_attempt(attempt)
            since = self._over_since.setdefault(name, time.monotonic())
            if time.monotonic() - since >= STALE_SECONDS and await connection.find(name, name):
                log.warning("%s is over but still there; ending it.", name)
                await kill_quietly(connection, name)
        over_names = {name_attempt(attempt) for attempt in over}
        self._over_since = {name: at for name, at in self._over_since.items() if name in over_names}
        for attempt in placed:
            name = name_attempt(attempt)
            if name not in self._watched and name not in over_names:
                log.info("Found %s again; it plays on.", name)
                self._start_task(name, partial(self._adopt, attempt))

    async def _find_over(self, placed: list[HostAttemptId]) -> list[HostAttemptId] | None:
        """None if the server cannot be asked now."""
        if not placed:
            return []
        try:
            return (
                await self.server.post("/hosts/attempts", PlacedAttempts(placed), PlacedAttempts)
            ).attempts
        except ServerError:
            return None

    async def _adopt(self, attempt: HostAttemptId) -> None:
        name = name_attempt(attempt)
        self._watched.add(name)
        try:
            await self._watch(attempt)
        finally:
            self._watched.discard(name)


def name_attempt(attempt: HostAttemptId) -> str:
    """What the cluster knows an attempt by."""
    return f"{attempt.run_id}-{attempt.attempt}"


def parse_attempt(name: str) -> HostAttemptId | None:
    match = ATTEMPT_NAME.fullmatch(name)
    return None if match is None else HostAttemptId(match["run"], int(match["attempt"]))


async def kill_quietly(connection: AttemptLauncher, key: str) -> None:
    with suppress(ClusterError):
        await connection.kill(key)
