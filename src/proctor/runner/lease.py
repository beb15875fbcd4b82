"""Renew the lease of a run while a host plays it.

The server's answer to each renewal says whether the run shall stop or belongs to another host by now. Knows
nothing of how the run is played.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from proctor.api.runner import Lease, RunAssignment
from proctor.client.connection import ServerConnection, ServerError, decode_answer
from proctor.support.logs import log

UNREACHABLE_SECONDS = 600.0
"""How long the server may be unreachable before we assume that another host has the run."""
RENEWALS_PER_LEASE = 4


class LeaseRenewal:
    """Renews one attempt's lease until it is cancelled, and passes on each answer."""

    def __init__(
        self,
        server: ServerConnection,
        host: str,
        assignment: RunAssignment,
        obey: Callable[[Lease], Awaitable[None]],
    ) -> None:
        self._server = server
        self._host = host
        self._assignment = assignment
        self._obey = obey
        self._answered_at = time.monotonic()

    async def run(self) -> None:
        pause = self._assignment.lease_seconds / RENEWALS_PER_LEASE
        while True:
            await asyncio.sleep(pause)
            try:
                await self._obey(await self.renew(pause))
            except Exception:
                log.exception("%s: its lease was not renewed; trying again", self._assignment.run_id)

    async def renew(self, seconds: float) -> Lease:
        """The server's answer, if it comes within this many seconds."""
        path = f"/hosts/runs/{self._assignment.run_id}/heartbeat"
        query = {"host": self._host, "attempt": self._assignment.attempt}
        try:
            answer = await self._server.ask("POST", path, query=query, seconds=seconds)
            lease = decode_answer(answer, Lease)
        except ServerError as error:
            away = time.monotonic() - self._answered_at > UNREACHABLE_SECONDS
            return Lease(lost=away or not error.is_transient)
        self._answered_at = time.monotonic()
        return lease
