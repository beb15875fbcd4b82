"""The one way out of a run's sandbox: a Unix socket on the host that is relayed to the server.

Connections wait for a server that is briefly unreachable, so that a restart costs no rollout. Knows nothing
of what is sent, or by whom.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from proctor.errors import ConfigError
from proctor.support.relay import FarEnd, Streams, open_relay, open_stream

PORTS = {"http": 80, "https": 443}
CONNECT_PATIENCE_SECONDS = 120.0
"""How long a connection waits for a server that does not accept it."""
MAX_CONNECTIONS = 500
"""Of one run at once, as many as a server takes from one address: to the server they all come from this
machine, where it does not tell runs from each other, and one must not take the connections of all."""
PAUSE_SECONDS = 0.25


@asynccontextmanager
async def open_server_relay(
    server_url: str, patience: float = CONNECT_PATIENCE_SECONDS
) -> AsyncIterator[Path]:
    """The path of the socket, for as long as the block lasts."""
    parts = urlsplit(server_url)
    if parts.scheme not in PORTS or parts.hostname is None:
        raise ConfigError(
            f"{server_url!r} is not the address of a server; write http://HOST:PORT or https://HOST."
        )
    host, port = parts.hostname, parts.port or PORTS[parts.scheme]
    encryption = ssl.create_default_context() if parts.scheme == "https" else None

    def connect() -> AbstractAsyncContextManager[FarEnd]:
        return open_stream(
            connect_with_retries(lambda: asyncio.open_connection(host, port, ssl=encryption), patience)
        )

    async with open_relay(connect, f"the server {server_url}", MAX_CONNECTIONS) as url:
        yield Path(url.removeprefix("unix://"))


async def connect_with_retries(connect: Callable[[], Awaitable[Streams]], seconds: float) -> Streams:
    """Connect to a server that may still be starting."""
    end = time.monotonic() + seconds
    while True:
        try:
            return await connect()
        except ConnectionError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
