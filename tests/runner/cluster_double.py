"""Stands for a Ray cluster: places what it is told where a test says, and ends it when a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from proctor.cluster.address import ClusterAddress
from proctor.cluster.connect import ClusterError, ProcessLostError
from proctor.cluster.messages import ClusterNode, Placement, ProcessEnd, StartedProcess
from proctor.runner.node_messages import NodeGreeting, NodeRequest


def make_node(name: str, cpus: float = 2.0) -> ClusterNode:
    resources = {"CPU": cpus, "memory": 64e9}
    return ClusterNode(
        id=name,
        host=f"10.0.0.{len(name)}",
        name=name,
        is_alive=True,
        is_head=False,
        total=resources,
        free=resources,
    )


class ClusterDouble:
    """What lives in it outlives a connection."""

    def __init__(self, *nodes: ClusterNode) -> None:
        self.seen = list(nodes)
        self.greetings: dict[str, NodeGreeting] = {}
        """Of nodes that are not as they should be."""
        self.full = False
        """No process that is launched with a name gets room."""
        self.requests: dict[str, NodeRequest] = {}
        """Of named processes."""
        self.places: dict[str, str] = {}
        """Their nodes."""
        self.ends: dict[str, asyncio.Future[ProcessEnd]] = {}
        self.killed: list[str] = []
        self.connections = 0
        self.broken = asyncio.Event()

    @asynccontextmanager
    async def connect(self, address: ClusterAddress) -> AsyncIterator[ClusterDouble]:
        self.connections += 1
        self.broken.clear()
        yield self

    def break_connection(self) -> None:
        self.broken.set()

    def add(self, name: str) -> None:
        """A process that an earlier host placed."""
        self.ends[name] = asyncio.get_running_loop().create_future()

    def lose(self, name: str) -> None:
        self.ends.pop(name).set_exception(ProcessLostError("its node has died"))

    async def nodes(self) -> list[ClusterNode]:
        if self.broken.is_set():
            raise ClusterError("the connection to the cluster has ended")
        return self.seen

    async def launch(
        self,
        key: str,
        module: str,
        line: str,
        placement: Placement,
        *,
        variables: Mapping[str, str] | None = None,
        greeting_seconds: float = 60.0,
        name: str = "",
    ) -> StartedProcess:
        if name and self.full:
            await asyncio.Event().wait()
        if name:
            self.add(name)
            self.requests[name] = msgspec.json.decode(line, type=NodeRequest)
            self.places[name] = placement.node
        greeting = self.greetings.get(placement.node, NodeGreeting())
        return StartedProcess(
            node=placement.node, host="10.0.0.1", pid=1, hello=msgspec.json.encode(greeting).decode()
        )

    async def names(self) -> list[str]:
        return sorted(self.ends)

    async def find(self, key: str, name: str) -> bool:
        return name in self.ends

    async def wait_for_end(self, key: str, seconds: float | None = None) -> ProcessEnd:
        breaking = asyncio.create_task(self.broken.wait())
        ending = self.ends[key]
        both: list[asyncio.Future[Any]] = [breaking, ending]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        breaking.cancel()
        if not ending.done():
            raise ClusterError("the connection to the cluster has ended")
        return ending.result()

    async def kill(self, key: str) -> None:
        self.killed.append(key)
        self.ends.pop(key, None)
