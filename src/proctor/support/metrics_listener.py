"""Answer `GET /metrics` on a port of its own, and measure how late this event loop is.

A port of its own needs no token and is never part of what a reverse proxy publishes. Knows nothing of what is
measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from proctor.errors import ConfigError, describe_os_error
from proctor.support.cancellation import cancel_task
from proctor.support.logs import log
from proctor.support.metrics import CONTENT_TYPE, Metric, TimeHistogram, render_metrics
from proctor.support.metrics_address import MetricsAddress

LOOP_SECONDS = 0.5
"""How often the event loop's lateness is measured."""
GOODBYE_SECONDS = 1.0
AT_ONCE = 16
"""Connections that wait to be accepted."""


class MetricsListener:
    """Serves metrics from `start` until `close`."""

    def __init__(
        self,
        address: MetricsAddress,
        metrics: Sequence[Metric],
        refresh: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.port = address.port
        self._address = address
        self._lateness = TimeHistogram(
            "proctor_event_loop_lag_seconds", "How late the event loop wakes what is due."
        )
        self._metrics = [*metrics, self._lateness]
        self._refresh = refresh
        self._runner: web.AppRunner | None = None
        self._measuring: asyncio.Task[None] | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/metrics", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=GOODBYE_SECONDS)
        await runner.setup()
        host, port = self._address.host, self._address.port
        try:
            await web.TCPSite(runner, host, port, backlog=AT_ONCE).start()
        except OSError as error:
            await runner.cleanup()
            why = describe_os_error(error)
            raise ConfigError(
                f"Cannot answer for metrics on {host}:{port} ({why}); choose another --metrics."
            ) from error
        self._runner = runner
        self.port = runner.addresses[0][1]
        shown = f"[{host}]" if ":" in host else host
        log.info("metrics are at http://%s:%d/metrics", shown, self.port)
        self._measuring = asyncio.create_task(self._measure_loop())

    async def close(self) -> None:
        await cancel_task(self._measuring)
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, _: web.Request) -> web.Response:
        if self._refresh is not None:
            await self._refresh()
        return web.Response(body=render_metrics(self._metrics), headers={"content-type": CONTENT_TYPE})

    async def _measure_loop(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due = clock() + LOOP_SECONDS
            await asyncio.sleep(LOOP_SECONDS)
            self._lateness.observe(max(0.0, clock() - due))
