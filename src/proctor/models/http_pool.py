"""HTTP requests over aiohttp's pool of connections, without its session.

A session prepares the headers, cookies and redirects of each request anew and writes it in a task of its own,
which is most of what a call costs. Here everything that requests to one address have in common is prepared
once. Connecting, TLS, proxies, pooling, parsing and decompression are aiohttp's. Knows nothing of models.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.helpers import basicauth_from_netrc, get_env_proxy_for_url, netrc_from_env
from aiohttp.http import RawResponseMessage, StreamWriter
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

WRITTEN_AT_ONCE = 2**20
"""A larger body is written in pieces: in one go it would block the event loop."""
PIECE = 2**18
SWITCHING_PROTOCOLS = 101
END_OF_HEAD = b"\r\n\r\n"


class PreparedRequest(NamedTuple):
    """What all requests to one address have in common."""

    address: aiohttp.ClientRequest
    """What the connector reads: the host, whether to use TLS, and the proxy."""
    first_line: bytes
    headers: CIMultiDict[str]
    head: bytes
    """The first line and the headers as they are sent."""


class HttpResponse:
    """A response whose body has not been read; its reader releases it."""

    __slots__ = ("_connection", "_sending", "content", "headers", "status")

    def __init__(
        self,
        connection: Connection,
        message: RawResponseMessage,
        content: aiohttp.StreamReader,
        sending: asyncio.Task[None] | None,
    ) -> None:
        self.status = message.code
        self.headers: CIMultiDictProxy[str] = message.headers
        self.content = content
        self._connection = connection
        self._sending = sending

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    async def read(self) -> bytes:
        """The whole body, at once if it came together with the head."""
        content = self.content
        return content.read_nowait() if content.is_eof() else await content.read()

    def release(self) -> None:
        """Return the connection to the pool, or close it if anything is left to read or to send."""
        transport = self._connection.transport
        if self._sending is not None and not self._sending.done():
            self._sending.cancel()
            self._connection.close()
        elif transport is None or transport.get_write_buffer_size():
            self._connection.close()
        else:
            self._connection.release()


class HttpPool:
    """Connections to one server, and the requests that are sent over them."""

    def __init__(
        self,
        headers: Mapping[str, str],
        connect_seconds: float,
        socket_factory: Callable[[Any], socket.socket] | None = None,
        *,
        trust_env: bool = False,
    ) -> None:
        self._headers = headers
        self._trust_env = trust_env
        """Use the proxy that the environment's variables name, and the logins in ~/.netrc."""
        self._connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, socket_factory=socket_factory)
        self._connecting = aiohttp.ClientTimeout(sock_connect=connect_seconds)
        self._prepared: dict[tuple[str, URL], PreparedRequest] = {}

    async def send(
        self,
        method: str,
        url: URL,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        read_seconds: float | None = None,
    ) -> HttpResponse:
        """The response, of any status. `read_seconds` limits each wait for bytes, not the whole."""
        prepared = self._prepared.get((method, url)) or self._prepare(method, url)
        head = prepared.head
        if headers and prepared.headers.keys().isdisjoint(headers):
            head += encode_headers(headers)
        elif headers:
            own = prepared.headers.copy()
            own.update(headers)
            head = prepared.first_line + encode_headers(own)
        try:
            connection = await self._connector.connect(prepared.address, [], self._connecting)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {url}") from error
        try:
            protocol, transport = connection.protocol, connection.transport
            if protocol is None or transport is None:  # closed as soon as it was open
                raise aiohttp.ServerDisconnectedError
            protocol.set_response_params(read_until_eof=True, read_timeout=read_seconds)
            sending: asyncio.Task[None] | None = None
            if body is None:
                transport.write(head + END_OF_HEAD)
            elif len(body) <= WRITTEN_AT_ONCE:
                transport.write(join_request(head, len(body), body))
            else:
                sending = asyncio.create_task(write_in_pieces(protocol, head, body))
                sending.add_done_callback(ignore_failure)
            if read_seconds is not None and sending is None:
                protocol.start_timeout()
            message, content = await protocol.read()
            while message.code < 200 and message.code != SWITCHING_PROTOCOLS:  # the answer is still to come
                message, content = await protocol.read()
        except HttpProcessingError as error:
            connection.close()
            info = prepared.address.request_info
            raise aiohttp.ClientResponseError(info, (), status=error.code, message=error.message) from error
        except BaseException:
            connection.close()
            raise
        return HttpResponse(connection, message, content, sending)

    async def close(self) -> None:
        await self._connector.close()

    def _prepare(self, method: str, url: URL) -> PreparedRequest:
        proxy = proxy_login = login = None
        if self._trust_env:
            with suppress(LookupError):
                proxy, proxy_login = get_env_proxy_for_url(url)
            if "authorization" not in self._headers:
                with suppress(LookupError):
                    login = basicauth_from_netrc(netrc_from_env(), url.host or "")
        address = aiohttp.ClientRequest(
            method,
            url,
            headers=self._headers,
            auth=login,
            proxy=proxy,
            proxy_auth=proxy_login,
            loop=asyncio.get_running_loop(),
        )
        headers = address.headers.copy()
        headers.popall("Content-Length", None)
        target = url.raw_path_qs
        if proxy is not None and url.scheme == "http":  # over TLS the proxy sees none of this
            target = str(url)
            if proxy_login is not None:
                headers["Proxy-Authorization"] = proxy_login.encode()
        first_line = f"{method} {target} HTTP/1.1".encode()
        prepared = PreparedRequest(address, first_line, headers, first_line + encode_headers(headers))
        self._prepared[method, url] = prepared
        return prepared


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """The lines of headers, each with the line break before it."""
    text = "".join([f"\r\n{name}: {value}" for name, value in headers.items()])
    if text.count("\r") != len(headers) or text.count("\n") != len(headers) or "\0" in text:
        raise ValueError("A header must not contain a line break or a null character.")
    return text.encode()


def join_request(head: bytes, size: int, body: bytes = b"") -> bytes:
    return b"%b\r\nContent-Length: %d\r\n\r\n%b" % (head, size, body)


async def write_in_pieces(protocol: ResponseHandler, head: bytes, body: bytes) -> None:
    writer = StreamWriter(protocol, asyncio.get_running_loop())
    await writer.write(join_request(head, len(body)))
    for start in range(0, len(body), PIECE):
        await writer.write(body[start : start + PIECE])
        await asyncio.sleep(0)
    protocol.start_timeout()


def ignore_failure(sending: asyncio.Task[None]) -> None:
    """A connection that breaks while a request is being written breaks its response too."""
    if not sending.cancelled():
        sending.exception()
