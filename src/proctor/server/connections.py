"""Limit how many connections the server accepts, and how long each may stay idle.

A connection costs a file descriptor, and descriptors run out for everyone at once. So every connection has a
deadline while it owes something (a request's head, its body, room for the answer), and their number is
limited, in total and per address. When there is no room, the oldest connection that owes a head makes way for
a new one: clients that send requests are never shut out by clients that send none.

Knows nothing of requests beyond where they begin and end.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter
from ipaddress import ip_address, ip_network
from typing import ClassVar, Protocol

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from proctor.api.common import PROBLEM_TYPE, Problem, complete_problem
from proctor.server.settings import ConnectionLimits
from proctor.support.logs import log

SWEEP_SECONDS = 0.5
LONGEST_HEAD = 64 * 1024
"""Bytes of a request's address, headers and trailers."""
OTHER_DESCRIPTORS = 200
"""Reserved for databases, files and processes."""
MOST_CONNECTIONS = 10_000
LOCAL_SHARE = 8
"""One in this many connections is reserved for this machine, where the server's own host runs."""
RETRY_SECONDS = 5
WARN_SECONDS = 60.0


def connections_for(descriptors: int) -> int:
    """How many connections fit: each may need a second descriptor, for a model or an instance."""
    return max(16, min(MOST_CONNECTIONS, (descriptors - OTHER_DESCRIPTORS) // 2))


class Peer(Protocol):
    """A connection's entry in the table."""

    address: str
    is_local: bool

    def drop(self) -> None: ...


class ConnectionTable:
    """All connections of a server, and since when each of them has owed something."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = limits.in_all or connections_for(soft)
        self._trusted = [ip_network(each) for each in limits.trusted_proxies]
        self._open: set[Peer] = set()
        self._by_address: Counter[str] = Counter()
        self._waiting: dict[GuardedProtocol, float] = {}
        """Owe a request's head; oldest first."""
        self._waiting_by_address: Counter[str] = Counter()
        self.sending: set[GuardedProtocol] = set()
        """Owe a request's body."""
        self.stalled: dict[GuardedProtocol, Stall] = {}
        """Do not read the answer they requested; oldest first."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._warned_at = -WARN_SECONDS

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, peer: Peer) -> str | None:
        """Admit a new connection, or return why there is no room for it."""
        is_full = self._by_address[peer.address] >= self.limits.per_address
        if is_full and not self._is_exempt(peer) and not self._make_room(peer.address):
            return (
                f"{peer.address} has {self.limits.per_address} connections open, which is the server's "
                f"limit per address; close some, or ask its operator to raise --connections-per-address."
            )
        room = self.most if peer.is_local else self.most - self.most // LOCAL_SHARE
        if len(self._open) >= room and not self._make_room(self._address_to_thin_out()):
            self._warn(room)
            return f"The server is at its limit of {room} connections; try again in a moment."
        self._open.add(peer)
        self._by_address[peer.address] += 1
        return None

    def release(self, peer: Peer) -> None:
        if peer in self._open:
            self._open.remove(peer)
            decrease(self._by_address, peer.address)

    def hand_over(self, peer: Peer, successor: Peer) -> None:
        """A connection continues under another protocol."""
        if peer in self._open:
            self._open.remove(peer)
            self._open.add(successor)

    def begin_waiting(self, peer: GuardedProtocol, now: float) -> None:
        self.end_waiting(peer)
        self._waiting[peer] = now
        self._waiting_by_address[peer.address] += 1

    def end_waiting(self, peer: GuardedProtocol) -> None:
        if self._waiting.pop(peer, None) is not None:
            decrease(self._waiting_by_address, peer.address)

    def _is_exempt(self, peer: Peer) -> bool:
        if peer.is_local:
            return True
        try:
            return any(ip_address(peer.address) in network for network in self._trusted)
        except ValueError:  # a Unix socket has no address
            return True

    def _address_to_thin_out(self) -> str | None:
        counted = self._waiting_by_address
        return max(counted, key=counted.__getitem__) if counted else None

    def _make_room(self, address: str | None) -> bool:
        """Drop a connection of this address that owes a head; failing that, any that does not read its
        answer."""
        owing = (peer for peer in self._waiting if peer.address == address)
        found = next(owing, None) or (next(iter(self.stalled), None) if address is None else None)
        if found is not None:
            found.drop()
        return found is not None

    def _warn(self, room: int) -> None:
        now = time.monotonic()
        if now >= self._warned_at + WARN_SECONDS:
            self._warned_at = now
            log.warning("at the limit of %d connections; refusing more (raise it with --connections)", room)

    # Deadlines

    def start_sweeping(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._sweeper is None:
            self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """One timer for all: it checks only connections that owe something."""
        self._sweeper = None
        now = loop.time()
        overdue = []
        for peer, since in self._waiting.items():
            if since + self.limits.head_seconds > now:
                break  # all others are newer
            overdue.append(peer)
        overdue += [peer for peer in self.sending if peer.is_body_overdue(now)]
        overdue += [peer for peer in self.stalled if peer.is_answer_overdue(now)]
        for peer in overdue:
            peer.drop()
        if self._open:
            self.start_sweeping(loop)


class Stall(msgspec.Struct):
    """An answer that is read more slowly than it is sent."""

    since: float
    unsent: int
    """Bytes that were left then."""


class GuardedProtocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with deadlines and an entry in the table of connections."""

    table: ClassVar[ConnectionTable]

    address = ""
    is_local = True
    close_when_read = False
    """The answer was sent; read and discard the rest of the request."""
    _is_admitted = False
    _head_bytes = 0
    _body_bytes = 0
    _body_deadline = 0.0
    _looked_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.is_local = is_of_this_machine(self.address, self.server[0] if self.server else "")
        refusal = self.table.admit(self)
        if refusal is not None:
            transport.write(unavailable(refusal, self.server_state.default_headers))
            transport.close()
            return
        self._is_admitted = True
        self.table.begin_waiting(self, self.loop.time())
        self.table.start_sweeping(self.loop)

    def connection_lost(self, exc: Exception | None) -> None:
        self._owe_nothing()
        self.table.release(self)
        super().connection_lost(exc)
        # They refer to each other: with them, the last request's body would stay until garbage is collected.
        self.cycle = self.scope = None  # type: ignore[assignment]

    def drop(self) -> None:
        """Close at once, whatever is left to send."""
        self._owe_nothing()
        self.table.release(self)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self._is_admitted or self.transport.is_closing():
            return
        super().data_received(data)
        if self._head_bytes > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The headers are too long.")

    def send_400_response(self, msg: str) -> None:
        if self._head_bytes > LONGEST_HEAD:
            self.transport.write(too_long_head(self.server_state.default_headers))
            self.transport.close()
        else:
            super().send_400_response(msg)

    # The parser's callbacks: where a request begins and ends

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._head_bytes += len(url)
        if self._head_bytes <= LONGEST_HEAD:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes <= LONGEST_HEAD:  # trailers are headers too
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._head_bytes > LONGEST_HEAD:
            raise ValueError("the headers are too long")
        super().on_headers_complete()
        if self.cycle is not None:  # None: it becomes a WebSocket
            self.cycle.transport = LingeringTransport(self)
        self.table.end_waiting(self)
        now = self.loop.time()
        self._body_bytes, self._looked_at = 0, now
        self._body_deadline = now + self.table.limits.body_seconds
        self.table.sending.add(self)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.table.sending.discard(self)
        super().on_message_complete()
        if self.close_when_read:
            self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:  # also of the last in a pipeline
            self.table.sending.discard(self)
            self.table.begin_waiting(self, self.loop.time())

    def handle_websocket_upgrade(self) -> None:
        self._owe_nothing()
        super().handle_websocket_upgrade()
        successor = self.transport.get_protocol()
        if isinstance(successor, CountedWebSocket):
            successor.follow(self)
            self.table.hand_over(self, successor)

    def pause_writing(self) -> None:
        self.table.stalled[self] = Stall(self.loop.time(), self.transport.get_write_buffer_size())
        super().pause_writing()

    def resume_writing(self) -> None:
        self.table.stalled.pop(self, None)
        super().resume_writing()

    # What it owes

    def _owe_nothing(self) -> None:
        self.table.end_waiting(self)
        self.table.sending.discard(self)
        self.table.stalled.pop(self, None)

    def is_body_overdue(self, now: float) -> bool:
        """Whether a body arrives too slowly, not counting the time in which the server did not read it."""
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._body_deadline += now - self._looked_at
        self._looked_at = now
        return now > self._body_deadline + self._body_bytes / self.table.limits.bytes_per_second

    def is_answer_overdue(self, now: float) -> bool:
        """Whether an answer is read too slowly, checked once in a while."""
        stall, limits = self.table.stalled[self], self.table.limits
        if now < stall.since + limits.stalled_seconds:
            return False
        unsent = self.transport.get_write_buffer_size()
        taken, stall.since, stall.unsent = stall.unsent - unsent, now, unsent
        return taken < limits.bytes_per_second * limits.stalled_seconds


class LingeringTransport(asyncio.Transport):
    """Where an answer is written. Closed only after the whole request was read: a client that is still
    sending would find its connection reset, and never see why it was refused."""

    def __init__(self, protocol: GuardedProtocol) -> None:
        self._protocol = protocol
        self.write = protocol.transport.write  # type: ignore[method-assign]

    def is_closing(self) -> bool:
        return self._protocol.transport.is_closing()

    def close(self) -> None:
        if self._protocol in self._protocol.table.sending:
            self._protocol.close_when_read = True
        else:
            self._protocol.transport.close()


class CountedWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket that takes over the entry of its HTTP connection."""

    address = ""
    is_local = True
    _table: ConnectionTable | None = None

    def follow(self, before: GuardedProtocol) -> None:
        self.address, self.is_local, self._table = before.address, before.is_local, before.table

    def connection_lost(self, exc: Exception | None) -> None:
        if self._table is not None:
            self._table.release(self)
        super().connection_lost(exc)

    def drop(self) -> None:
        self.transport.abort()


def guarded_protocol(limits: ConnectionLimits) -> type[GuardedProtocol]:
    """The protocol of one server, whose connections share a table."""
    return type("GuardedProtocol", (GuardedProtocol,), {"table": ConnectionTable(limits)})


def decrease(counted: Counter[str], name: str) -> None:
    counted[name] -= 1
    if not counted[name]:
        del counted[name]


def is_of_this_machine(address: str, own: str) -> bool:
    if not address or address == own:
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return True


def unavailable(message: str, headers: list[tuple[bytes, bytes]]) -> bytes:
    extra = [(b"retry-after", str(RETRY_SECONDS).encode())]
    return answer(b"503 Service Unavailable", "too_many_connections", message, [*headers, *extra])


def too_long_head(headers: list[tuple[bytes, bytes]]) -> bytes:
    message = f"The address and headers of a request have at most {LONGEST_HEAD // 1024} KB."
    return answer(b"431 Request Header Fields Too Large", "too_large", message, headers)


def answer(status: bytes, code: str, message: str, headers: list[tuple[bytes, bytes]]) -> bytes:
    body = msgspec.json.encode(complete_problem(Problem(code, message), int(status.split()[0])))
    own: list[tuple[bytes, bytes]] = [
        *headers,
        (b"content-type", PROBLEM_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in own)
    return b"HTTP/1.1 " + status + b"\r\n" + lines + b"\r\n" + body
