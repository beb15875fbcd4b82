"""Start a server: the first time with a database, an admin and a token; every time until it is told to end.

Knows nothing of routes.
"""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import uvicorn

from proctor.server.app import create_app
from proctor.server.connections import CountedWebSocket, guarded_protocol
from proctor.server.people import first_login
from proctor.server.platform import Platform
from proctor.server.sandboxes.proxy import LARGEST_MESSAGE
from proctor.server.settings import Settings
from proctor.support.loop import raise_file_limit

GOODBYE_SECONDS = 3
"""How long open streams may hold up the end."""


HEADERS = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
]
"""Of every answer: whatever a model or an environment said is what its type says, and no page."""


class OpenedServer(msgspec.Struct, frozen=True):
    """A server that is ready to be run."""

    platform: Platform
    first_token: str | None
    """Of the admin, if this is the first start."""

    @property
    def token_file(self) -> Path:
        return self.platform.data / first_login.TOKEN_FILE


def open_server(settings: Settings) -> OpenedServer:
    platform = Platform(settings)
    token = platform.database.write_now(first_login.add_first_admin)
    if token is not None:
        first_login.write_token(platform.data, token)
    platform.database.read_now(first_login.remove_used, platform.data)
    return OpenedServer(platform, token)


class PlatformServer(uvicorn.Server):
    """Before it ends, what lives beside it ends, and can still say so."""

    def __init__(self, config: uvicorn.Config, platform: Platform) -> None:
        super().__init__(config)
        self._platform = platform

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._platform.wind_down()
        await super().shutdown(sockets)


def create_http_server(platform: Platform) -> uvicorn.Server:
    settings = platform.settings
    raise_file_limit()  # before the connections that fit are counted
    return PlatformServer(
        uvicorn.Config(
            create_app(platform),
            host=settings.host,
            port=settings.port,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=GOODBYE_SECONDS,
            server_header=False,
            proxy_headers=False,  # nobody is known by their address, so nobody can pretend one
            headers=HEADERS,
            http=guarded_protocol(settings.connections),
            ws=CountedWebSocket,
            ws_max_size=LARGEST_MESSAGE,
        ),
        platform,
    )
