"""Count requests and how long they take, by area of the API: never by path, which holds what people wrote.

Knows nothing of what is requested.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

from litestar import Litestar

from proctor.api.common import BASE
from proctor.server.dashboard import Application, Message, Scope, Send
from proctor.server.gateway.asgi import is_for_gateway
from proctor.support.metrics import Counter, Gauge, Metric, TimeHistogram

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
GATEWAY, PAGES, OTHER = "gateway", "pages", "other"
DISCONNECTED = "none"
"""The status of a request whose client left before an answer began."""


class RequestMeasures:
    """Of all requests of a server."""

    def __init__(self) -> None:
        labels = ("area", "method", "status")
        self.requests = Counter("proctor_http_requests_total", "Requests, by area of the API.", labels)
        self.seconds = TimeHistogram(
            "proctor_http_response_seconds",
            "Time until an answer begins; streams continue after that.",
            ("area",),
        )
        self.calls = TimeHistogram(
            "proctor_gateway_call_seconds", "Time of a model call, from its request to its last byte."
        )
        self.in_flight = 0

    @property
    def metrics(self) -> list[Metric]:
        return [
            self.requests,
            self.seconds,
            self.calls,
            Gauge(
                "proctor_http_requests_in_flight", "Requests and streams under way.", lambda: self.in_flight
            ),
        ]

    def wrap(self, app: Application, areas: Collection[str]) -> Application:
        """An application whose requests are measured; what is outside these areas counts as `other`."""

        async def serve(scope: Scope, receive: Any, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            await self._measure(
                scope, send, name_area(scope["path"], areas), lambda out: app(scope, receive, out)
            )

        return serve

    async def _measure(self, scope: Scope, send: Send, area: str, answer: Callable[[Send], Any]) -> None:
        began, status = time.perf_counter(), DISCONNECTED

        async def note_start(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = f"{message['status'] // 100}xx"
                self.seconds.observe(time.perf_counter() - began, area)
            await send(message)

        method = scope["method"] if scope["method"] in METHODS else OTHER
        self.in_flight += 1
        try:
            await answer(note_start)
        finally:
            self.in_flight -= 1
            self.requests.add(1, area, method, status)
            if area == GATEWAY and method == "POST":
                self.calls.observe(time.perf_counter() - began)


def list_areas(app: Litestar) -> frozenset[str]:
    """The first word of each route after the API's base: a few dozen."""
    paths = (route.path.removeprefix(BASE) for route in app.routes if route.path.startswith(BASE))
    return frozenset(path.split("/")[1] for path in paths if "/" in path and "{" not in path.split("/")[1])


def name_area(path: str, areas: Collection[str]) -> str:
    if is_for_gateway(path):
        return GATEWAY
    if not path.startswith(f"{BASE}/"):
        return "index" if path.startswith("/simple") else PAGES
    word = path[len(BASE) + 1 :].partition("/")[0]
    return word if word in areas else OTHER
