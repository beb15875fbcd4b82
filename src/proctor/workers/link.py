"""The run's end of a network link to its workers: no other peer is admitted, and nothing is read from one.

A worker is let in by a certificate that it made for this one conversation and by a token that works once. The
certificates of both ends are exchanged beforehand, by the process that starts the worker. A stranger fails in
the TLS handshake; none of its bytes reach the unpickler. Knows nothing of frames, or of how workers start.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Mapping
from typing import Any

from proctor.errors import ConfigError, EnvError
from proctor.support.logs import log
from proctor.workers.certificates import is_pinned, make_certificate, server_context, trust

TOKEN_BYTES = 32
GREETING_SECONDS = 10.0
"""For the TLS handshake, and again for the token."""
WELCOME = b"proctor!"
"""What a worker receives once it has been admitted."""
CUT_SECONDS = 12
"""A link that carries nothing for this long is cut."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ExpectedWorker:
    """A worker that may connect once."""

    def __init__(self, link: Link) -> None:
        self.token = secrets.token_hex(TOKEN_BYTES // 2)
        self._link = link
        self._certificate = ""
        self._arrived: asyncio.Future[Streams] = asyncio.get_running_loop().create_future()

    def pin(self, certificate: str) -> None:
        """Let it in with this certificate."""
        self._certificate = certificate
        self._link.trust(certificate)

    def welcome(self, streams: Streams) -> bool:
        """Whether the peer is this worker; it is let in if so."""
        connection = streams[1].get_extra_info("ssl_object")
        if not self._certificate or self._arrived.done() or not is_pinned(connection, self._certificate):
            return False
        self._arrived.set_result(streams)
        return True

    async def wait_for_it(self, seconds: float) -> Streams:
        try:
            async with asyncio.timeout(seconds):
                return await self._arrived
        except TimeoutError:
            raise EnvError(
                f"it did not reach this machine at {self._link.where} within {seconds:g} s; check the route "
                f"with `proctor cluster check`, or set 'listen' in --on-args"
            ) from None
        finally:
            self._link.forget(self)


class Link:
    """Listens for workers."""

    def __init__(self) -> None:
        own = make_certificate()
        self.certificate = own.public
        self._context = server_context(own)
        self._expected: dict[bytes, ExpectedWorker] = {}
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.host, self.port = "", 0

    @property
    def where(self) -> str:
        return f"{self.host}:{self.port}"

    async def open(self, host: str, port: int = 0) -> None:
        try:
            self._server = await asyncio.start_server(
                self._receive, host, port, ssl=self._context, ssl_handshake_timeout=GREETING_SECONDS
            )
        except OSError as error:
            raise ConfigError(
                f"Cannot listen for workers at {host}:{port}: {error.strerror or error}; set 'listen' in "
                f"--on-args to an address of this machine that the nodes reach."
            ) from error
        self.host, self.port = host, self._server.sockets[0].getsockname()[1]

    def expect(self) -> ExpectedWorker:
        worker = ExpectedWorker(self)
        self._expected[worker.token.encode()] = worker
        return worker

    def forget(self, worker: ExpectedWorker) -> None:
        self._expected.pop(worker.token.encode(), None)

    def trust(self, certificate: str) -> None:
        trust(self._context, certificate)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.close()

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keep_alive(writer.get_extra_info("socket"))
        self._open.add(writer)
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                token = await reader.readexactly(TOKEN_BYTES)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            token = b""
        finally:
            self._open.discard(writer)
        worker = self._expected.get(token)
        if worker is None or not worker.welcome((reader, writer)):
            log.warning("a connection from %s was refused", describe_peer(writer))
            writer.close()
            return
        self.forget(worker)
        writer.write(WELCOME)


def describe_peer(writer: asyncio.StreamWriter) -> str:
    peer: Any = writer.get_extra_info("peername")
    return str(peer[0]) if peer else "an unknown address"


def keep_alive(connection: socket.socket) -> None:
    """Have the kernel notice a silent peer, with or without anything left to send."""
    options: Mapping[str, int] = {
        "TCP_KEEPIDLE": CUT_SECONDS // 3,
        "TCP_KEEPINTVL": CUT_SECONDS // 3,
        "TCP_KEEPCNT": 2,
        "TCP_USER_TIMEOUT": CUT_SECONDS * 1000,
        "TCP_NODELAY": 1,
    }
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        if hasattr(socket, name):  # other systems name them otherwise, and keep their own intervals
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
