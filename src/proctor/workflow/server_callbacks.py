"""Where a rollout server reports to, if it calls back: first that the workflow ended, then the grade.

Knows nothing of what the reports mean.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import msgspec
from aiohttp import web

LARGEST_REPORT = 64 * 2**20


class PendingReports:
    """The two reports of one attempt, and the key they come with."""

    def __init__(self, key: str) -> None:
        self.key = key
        loop = asyncio.get_running_loop()
        self.completion: asyncio.Future[dict[str, Any]] = loop.create_future()
        self.grade: asyncio.Future[dict[str, Any]] = loop.create_future()

    def take(self, kind: str, report: dict[str, Any]) -> None:
        future = self.completion if kind == "completion" else self.grade
        if not future.done():  # a report that is sent again changes nothing
            future.set_result(report)


class CallbackServer:
    """Takes the reports of all attempts, on loopback."""

    def __init__(self) -> None:
        self.url = ""
        self._pending: dict[str, PendingReports] = {}
        app = web.Application(client_max_size=LARGEST_REPORT)
        app.router.add_post("/{rollout}/{kind:completion|grade}", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        await self._runner.cleanup()

    def expect(self, rollout_id: str, key: str) -> PendingReports:
        pending = self._pending[rollout_id] = PendingReports(key)
        return pending

    def forget(self, rollout_id: str) -> None:
        self._pending.pop(rollout_id, None)

    async def _take(self, request: web.Request) -> web.Response:
        pending = self._pending.get(request.match_info["rollout"])
        if pending is None:
            return web.json_response({"detail": "no such rollout is expected"}, status=404)
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(), pending.key.encode()):
            return web.json_response({"detail": "unauthorized"}, status=401)
        try:
            report = msgspec.json.decode(await request.read(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            return web.json_response({"detail": f"not a JSON object: {error}"}, status=400)
        pending.take(request.match_info["kind"], report)
        return web.json_response({"status": "ok"})
