"""The one way out of a run's walls: a Unix socket on the host whose connections end at the server.

A server that is away is a connection that is closed at once; who asks, tries again. Knows nothing of what is
said, nor by whom.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from proctor.errors import ConfigError
from proctor.runtimes.relay import Far, relayed, streamed

PORTS = {"http": 80, "https": 443}


@asynccontextmanager
async def relay(server_url: str) -> AsyncIterator[Path]:
    """The path of the socket, for as long as the block lasts; any number of connections at once."""
    parts = urlsplit(server_url)
    if parts.scheme not in PORTS or parts.hostname is None:
        raise ConfigError(
            f"{server_url!r} is no address of a server; write http://HOST:PORT or https://HOST."
        )
    host, port = parts.hostname, parts.port or PORTS[parts.scheme]
    encryption = ssl.create_default_context() if parts.scheme == "https" else None

    def connect() -> AbstractAsyncContextManager[Far]:
        return streamed(asyncio.open_connection(host, port, ssl=encryption))

    async with relayed(connect, f"the server {server_url}") as url:
        yield Path(url.removeprefix("unix://"))
