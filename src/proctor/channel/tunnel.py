"""Reach a capability behind a channel: a local port, each connection to which becomes a tunnel.

So only the control port of an environment must be reachable. Knows nothing of what the bytes mean.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

from proctor.channel.client import Binding, Channel, open_wire
from proctor.channel.frames import RemoteError
from proctor.support.join_connections import SplicedConnection
from proctor.support.logs import log


class Tunnel:
    """A loopback port that leads to one capability."""

    def __init__(self, channel: Channel, binding: Binding) -> None:
        self.binding = binding
        self._channel = channel
        self._server: asyncio.Server | None = None
        self._joining: set[asyncio.Task[None]] = set()

    async def open(self) -> str:
        """Listen; returns the capability's local address."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        parts = urlsplit(self.binding.url)
        user = f"{parts.username}@" if parts.username else ""
        return urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{port}"))

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._joining:
            task.cancel()

    def _accept(self) -> SplicedConnection:
        here = SplicedConnection()
        task = asyncio.ensure_future(self._join(here))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)
        return here

    async def _join(self, here: SplicedConnection) -> None:
        """Ask for the tunnel on a new connection; raw bytes follow the answer."""
        try:
            wire = await open_wire(self._channel.url)
            there = SplicedConnection(wire.transport)
            wire.take_over_after_answer(there)
            params = {"capability": self.binding.name}
            if self._channel.token is not None:
                params["token"] = self._channel.token
            await wire.ask("tunnel.open", params)
        except (OSError, RemoteError) as error:
            log.warning("no tunnel to %s of %s: %s", self.binding.name, self._channel.url, error)
            if here.transport is not None:
                here.transport.close()
            return
        here.join(there)
        with suppress(asyncio.CancelledError):
            await here.closed
        wire.close()
