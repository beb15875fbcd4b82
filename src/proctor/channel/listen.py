"""Listen on a socket for a served environment.

Knows addresses. Knows nothing of the protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from proctor.channel.connection import ChannelConnection
from proctor.channel.frame_stream import FrameConnection
from proctor.channel.server import ServedEnvironment
from proctor.errors import ConfigError, describe_os_error

BACKLOG = 1024


@contextlib.asynccontextmanager
async def open_channel_server(
    served: ServedEnvironment, *, host: str = "127.0.0.1", port: int = 0, path: str | Path | None = None
) -> AsyncIterator[str]:
    """Serve until the block ends; gives the address, a Unix socket if `path` is set."""
    open_connections: set[ChannelConnection] = set()

    def accept() -> FrameConnection:
        wire = FrameConnection(is_server=True)
        wire.owner = ChannelConnection(served, wire, open_connections)
        return wire

    server = await bind_server(accept, host, port, path)
    try:
        yield f"unix://{path}" if path is not None else format_address(server)
    finally:
        server.close()
        await asyncio.gather(*(connection.close() for connection in list(open_connections)))
        await served.close()
        await served.environment.close()


async def bind_server(
    accept: Callable[[], FrameConnection], host: str, port: int, path: str | Path | None
) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    where = str(path) if path is not None else f"{host}:{port}"
    try:
        if path is not None:
            return await loop.create_unix_server(accept, str(path), backlog=BACKLOG)
        return await loop.create_server(accept, host, port, backlog=BACKLOG)
    except OSError as error:
        other = "another path" if path is not None else "another port with -p"
        raise ConfigError(
            f"Cannot listen on {where} ({describe_os_error(error)}); choose {other}."
        ) from error


def format_address(server: asyncio.Server) -> str:
    host, port = server.sockets[0].getsockname()[:2]
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
