"""The gateway to the evaluated model: one server for all rollouts of a run, started for the first one.

Knows nothing of HTTP: the server is imported with the first session.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from proctor.contracts import HttpEndpoint, Seat
from proctor.gateway.session import GatewaySession

if TYPE_CHECKING:
    from proctor.gateway.server import GatewayServer

KEY_PREFIX = "sk-proctor-"


class RolloutGateway:
    """Opens sessions with one model, each with a key of its own."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._sessions: dict[str, GatewaySession] = {}
        self._server: GatewayServer | None = None
        self._starting = asyncio.Lock()

    @asynccontextmanager
    async def open(self, seat: Seat, max_requests: int | None = None) -> AsyncIterator[HttpEndpoint]:
        """An endpoint for one rollout. Its key is refused once the block has ended."""
        server = await self._ensure_started()
        key = KEY_PREFIX + secrets.token_urlsafe(32)
        session = self._sessions[key] = GatewaySession(seat, self._model, max_requests)
        try:
            yield HttpEndpoint(server.url, key, server.socket, self._model, session.traffic)
        finally:
            del self._sessions[key]
            await session.close()

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()
            self._server = None

    async def _ensure_started(self) -> GatewayServer:
        async with self._starting:
            if self._server is None:
                from proctor.gateway.server import GatewayServer

                server = GatewayServer(self._sessions)
                await server.start()
                self._server = server
            return self._server
