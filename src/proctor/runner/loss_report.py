"""Report to the server that the process of a run is gone. Knows nothing of how it was played."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from proctor.api.runner import HostAttemptId, LostRun
from proctor.client.connection import ServerConnection, ServerError
from proctor.support.logs import log

REPORT_TRIES, REPORT_PAUSE_SECONDS = 10, 1.0


class LossReport(msgspec.Struct, frozen=True, kw_only=True):
    """Which attempt was lost, and why. The server ignores it if it knows already."""

    host: str
    attempt: HostAttemptId
    lost: LostRun

    async def send(
        self,
        server: ServerConnection,
        tries: int = REPORT_TRIES,
        is_moot: Callable[[], bool] = lambda: False,
    ) -> None:
        """Retries until the server answers; after a while the server finds out by itself."""
        run_id = self.attempt.run_id
        for left in reversed(range(tries)):
            if is_moot():
                return
            try:
                await server.send(
                    f"/hosts/runs/{run_id}/lost", self.lost, host=self.host, attempt=self.attempt.attempt
                )
                return
            except ServerError as error:
                if not left or not error.is_transient:
                    log.warning("%s: could not report that the run was lost: %s", run_id, error)
                    return
            await asyncio.sleep(REPORT_PAUSE_SECONDS)
