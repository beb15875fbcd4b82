"""The way to the internet for runs that were granted it: an HTTP proxy on a Unix socket.

A run has no network of its own even then. It names an address, the host looks it up and connects to it, and
only to what is public: never to the host's own loopback, to its neighbours, or to what its cloud tells about
it. Knows nothing of runs.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from proctor.runtimes.relay import StreamFarEnd, open_unix_listener, splice_streams
from proctor.support.addresses import may_connect

CONNECT_SECONDS = 30.0
LONGEST_HEAD = 65_536
MAX_CONNECTIONS = 500
"""Of one run at once: each takes two descriptors of the host, which all its runs share."""
PROXY_HEADERS = ("connection:", "proxy-connection:", "proxy-authorization:", "keep-alive:")

AddressFilter = Callable[[str], bool]


class ProxyRefusedError(Exception):
    """What a run asked the proxy for is not given."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


@asynccontextmanager
async def open_internet_proxy(allowed: AddressFilter | None = None) -> AsyncIterator[Path]:
    """The path of the proxy's socket; `allowed` is asked for each address that a name leads to."""
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
    """The method, where to, and, for what is not encrypted, the request as the far end is to see it."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError as error:
        raise ProxyRefusedError(
            "431 Request Header Fields Too Large", "The request's head is too long."
        ) from error
    first, *headers = head.removesuffix("\r\n\r\n").split("\r\n")
    try:
        method, address, version = first.split(" ")
        target = urlsplit(f"//{address}" if method == "CONNECT" else address)
        port = target.port
    except ValueError as error:
        raise ProxyRefusedError("400 Bad Request", "This is no request for a proxy.") from error
    if target.hostname is None or (target.scheme != "http" if method != "CONNECT" else port is None):
        raise ProxyRefusedError("400 Bad Request", f"A proxy needs a whole address, not {address!r}.")
    path = (target.path or "/") + (f"?{target.query}" if target.query else "")
    kept = [line for line in headers if not line.lower().startswith(PROXY_HEADERS)]
    # The next request may be for another host: it has to come by a connection of its own.
    lines = [f"{method} {path} {version}", *kept, "Connection: close", "", ""]
    return method, target, "\r\n".join(lines).encode("latin-1")


async def connect_checked(
    target: SplitResult, allowed: AddressFilter
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects to an address that was looked at, so that the name cannot lead elsewhere meanwhile."""
    host, port = target.hostname or "", target.port or 80
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # no such name, or a text that no name can be
        raise ProxyRefusedError("502 Bad Gateway", f"{host} cannot be found: {error}.") from error
    addresses = list(dict.fromkeys(str(where[0]) for *_, where in found))
    if refused := [address for address in addresses if not allowed(address)]:
        raise ProxyRefusedError("403 Forbidden", f"{host} ({refused[0]}) is not on the public internet.")
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port, limit=LONGEST_HEAD)
        except OSError:
            continue
    raise ProxyRefusedError("502 Bad Gateway", f"{host}:{port} does not answer.")
