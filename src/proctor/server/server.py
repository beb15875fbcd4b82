"""Start a server: the first time with a database, an admin and a token; every time until a signal stops it.

Knows nothing of routes.
"""

from __future__ import annotations

import math
import socket
import time
from pathlib import Path

import msgspec
import uvicorn
from litestar import Litestar

from proctor.api.session import build_login_link
from proctor.pages.files import BuiltPages
from proctor.pages.security_headers import SAFE_HEADERS
from proctor.server.app import create_app
from proctor.server.connections import CountedWebSocket, guarded_protocol
from proctor.server.dashboard import with_compression, with_pages
from proctor.server.gateway.asgi import with_gateway
from proctor.server.gateway.gateway import ServerGateway
from proctor.server.metrics.measures import ServerMeasures
from proctor.server.metrics.requests import RequestMeasures, list_areas
from proctor.server.people import browser_sessions, first_login
from proctor.server.platform import Platform
from proctor.server.request_ids import with_request_ids
from proctor.server.sandboxes.forwarding import SandboxForwarding
from proctor.server.sandboxes.proxy import LARGEST_MESSAGE
from proctor.server.settings import Settings
from proctor.support.loop import raise_file_limit
from proctor.support.metrics_listener import MetricsListener

GOODBYE_SECONDS = 3
"""How long requests under way may delay the shutdown, or longer if the server drains for longer."""


HEADERS = list(SAFE_HEADERS.items())
"""For every answer: a browser must not treat the output of a model or an environment as a page."""


class OpenedServer(msgspec.Struct, frozen=True):
    """A server that is ready to run."""

    platform: Platform
    first_token: str | None
    """The admin's, if this is the first start."""
    first_link: str | None
    """The same for a browser."""

    @property
    def token_file(self) -> Path:
        return self.platform.data / first_login.TOKEN_FILE


def open_server(settings: Settings) -> OpenedServer:
    platform = Platform(settings)
    token = platform.database.write_now(first_login.add_first_admin)
    if token is not None:
        first_login.write_token(platform.data, token)
    platform.database.read_now(first_login.remove_used, platform.data)
    return OpenedServer(platform, token, None if token is None else make_first_link(platform))


def make_first_link(platform: Platform) -> str:
    code = platform.database.write_now(browser_sessions.add_first_code, time.time())
    return build_login_link(platform.settings.url, code)


class PlatformServer(uvicorn.Server):
    """Its background processes end before it does, and can still report."""

    def __init__(
        self, config: uvicorn.Config, platform: Platform, metrics: MetricsListener | None = None
    ) -> None:
        super().__init__(config)
        self._platform = platform
        self.metrics = metrics

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.metrics is not None:
            await self.metrics.start()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A load balancer would send its next request on a connection that is about to be closed.
        self.server_state.default_headers = [*self.server_state.default_headers, (b"connection", b"close")]
        await self._platform.wind_down()
        await super().shutdown(sockets)
        if self.metrics is not None:
            await self.metrics.close()


def create_http_server(platform: Platform, app: Litestar | None = None) -> PlatformServer:
    settings = platform.settings
    raise_file_limit()  # before counting how many connections fit
    app = app or create_app(platform)
    placed = SandboxForwarding(app, platform)
    routed = with_compression(with_pages(placed, BuiltPages()))
    served = with_gateway(routed, ServerGateway(platform))
    metrics = None
    if settings.metrics is not None:
        measures, requests = ServerMeasures(platform), RequestMeasures()
        served = requests.wrap(served, list_areas(app))
        measured = [*measures.metrics, *requests.metrics]
        metrics = MetricsListener(settings.metrics, measured, measures.refresh)
    return PlatformServer(
        uvicorn.Config(
            with_request_ids(served),
            host=settings.host,
            port=settings.port,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=max(GOODBYE_SECONDS, math.ceil(settings.drain_seconds)),
            server_header=False,
            proxy_headers=False,  # no caller is identified by address, so forging one gains nothing
            headers=HEADERS,
            http=guarded_protocol(settings.connections),
            ws=CountedWebSocket,
            ws_max_size=LARGEST_MESSAGE,
            log_config=None,  # its lines go where ours go
        ),
        platform,
        metrics,
    )
