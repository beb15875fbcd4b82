"""Internet access for runs that were granted it: an HTTP proxy on a Unix socket.

Even then a run has no network of its own. It names an address, the host resolves it and connects to it, and
only to public ones: never to the host's own loopback, its neighbors, or its cloud's metadata service. Knows
nothing of runs.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from proctor.support.addresses import may_connect
from proctor.support.relay import StreamFarEnd, open_unix_listener, splice_streams

CONNECT_SECONDS = 30.0
LONGEST_HEAD = 65_536
MAX_CONNECTIONS = 500
"""Of one run at once: each takes two descriptors of the host, which all its runs share."""
PROXY_HEADERS = ("connection:", "proxy-connection:", "proxy-authorization:", "keep-alive:")

AddressFilter = Callable[[str], bool]


class ProxyRefusedError(Exception):
    """The proxy refuses a run's request."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


@asynccontextmanager
async def open_internet_proxy(allowed: AddressFilter | None = None) -> AsyncIterator[Path]:
    """The path of the proxy's socket; `allowed` decides about each address that a name resolves to."""
    may = allowed or may_connect

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                method, target, rest = await read_proxy_request(reader)
                far_reader, far_writer = await connect_checked(target, may)
        except ProxyRefusedError as refused:
            text = f"{refused}\n".encode()
            head = f"HTTP/1.1 {refused.status}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + text)
            await writer.drain()
            return
        except (TimeoutError, asyncio.IncompleteReadError):
            return
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                far_writer.write(rest)
            await splice_streams(reader, writer, StreamFarEnd(far_reader, far_writer))
        finally:
            far_writer.close()

    async with open_unix_listener(carry, "the internet", MAX_CONNECTIONS) as path:
        yield path


async def read_proxy_request(reader: asyncio.StreamReader) -> tuple[str, SplitResult, bytes]:
    """The method, the target and, for unencrypted requests, the request to send to the target."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError as error:
        raise ProxyRefusedError(
            "431 Request Header Fields Too Large", "The request's headers are too long."
        ) from error
    first, *headers = head.removesuffix("\r\n\r\n").split("\r\n")
    try:
        method, address, version = first.split(" ")
        target = urlsplit(f"//{address}" if method == "CONNECT" else address)
        port = target.port
    except ValueError as error:
        raise ProxyRefusedError("400 Bad Request", "This is not a request for a proxy.") from error
    if target.hostname is None or (target.scheme != "http" if method != "CONNECT" else port is None):
        raise ProxyRefusedError("400 Bad Request", f"A proxy needs an absolute URL, not {address!r}.")
    path = (target.path or "/") + (f"?{target.query}" if target.query else "")
    kept = [line for line in headers if not line.lower().startswith(PROXY_HEADERS)]
    # The next request may be for another host: it needs a connection of its own.
    lines = [f"{method} {path} {version}", *kept, "Connection: close", "", ""]
    return method, target, "\r\n".join(lines).encode("latin-1")


async def connect_checked(
    target: SplitResult, allowed: AddressFilter
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to an address that was checked, so that the name cannot resolve to another in the meantime."""
    host, port = target.hostname or "", target.port or 80
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # no such name, or not a valid name
        raise ProxyRefusedError("502 Bad Gateway", f"Cannot resolve {host}: {error}.") from error
    addresses = list(dict.fromkeys(str(where[0]) for *_, where in found))
    if refused := [address for address in addresses if not allowed(address)]:
        raise ProxyRefusedError("403 Forbidden", f"{host} ({refused[0]}) is not on the public internet.")
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port, limit=LONGEST_HEAD)
        except OSError:
            continue
    raise ProxyRefusedError("502 Bad Gateway", f"{host}:{port} does not answer.")
