"""A cluster without Ray: the part of it that runs on nodes runs here, each process in a folder of its own."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec

from proctor.cluster.actor import ProcessParent
from proctor.cluster.address import ClusterAddress
from proctor.cluster.connect import ProcessLostError
from proctor.cluster.messages import ClusterNode, Connected, Placement, ProcessEnd, StartedProcess

HOST = "127.0.0.1"


class LocalNodes:
    """Launches processes as a node would."""

    def __init__(self, *, room: int = 100, host: str = HOST) -> None:
        self.connected = Connected(ray="0", python=platform.python_version(), host=HOST, address="")
        self.is_over = False
        self.host = host
        self.room = room
        self.launched: list[str] = []
        self._parents: dict[str, ProcessParent] = {}

    @asynccontextmanager
    async def connect(self, _: ClusterAddress) -> AsyncIterator[LocalNodes]:
        try:
            yield self
        finally:
            for parent in self._parents.values():
                await parent.kill()

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
        self.launched.append(line)
        if len(self._parents) >= self.room:
            await asyncio.Event().wait()
        parent = self._parents[key] = ProcessParent()
        started = await parent.launch(module, line, variables or {}, greeting_seconds)
        return msgspec.convert({**started, "node": "n", "host": self.host}, StartedProcess)

    async def is_placed(self, key: str) -> bool:
        return key in self._parents

    async def send_line(self, key: str, line: str) -> None:
        await self._parents[key].send_line(line)

    async def wait_for_end(self, key: str, seconds: float | None = None) -> ProcessEnd:
        if key not in self._parents:
            raise ProcessLostError("no such process")
        return msgspec.convert(await self._parents[key].wait_for_end(seconds), ProcessEnd)

    async def kill(self, key: str) -> None:
        if key in self._parents:
            await self._parents[key].kill()

    async def nodes(self) -> list[ClusterNode]:
        amount = {"CPU": float(self.room)}
        return [
            ClusterNode(
                id="n", host=self.host, name="n", is_alive=True, is_head=True, total=amount, free={"CPU": 0.0}
            )
        ]
