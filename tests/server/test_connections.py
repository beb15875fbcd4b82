"""Connections that are opened to be held: they cost their owner a connection, and nobody else an answer."""

from __future__ import annotations

import gc
import http.client
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from proctor.server.connections import ConnectionTable, connections_for
from proctor.server.settings import ConnectionLimits
from proctor.support.loop import raise_file_limit
from tests.server.serving import Served, serving, settings_in
from tests.server.workplace import workplace
from tests.waiting import wait_for

LIMITS = ConnectionLimits(
    in_all=20, head_seconds=1.0, body_seconds=1.0, stalled_seconds=1.0, bytes_per_second=100
)
PATIENCE = 60.0
"""Far more than any limit above, for a busy machine."""
HALF = b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(settings_in(tmp_path_factory.mktemp("strict"), connections=LIMITS)) as server:
        yield server


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    address = url.rpartition("/")[2]
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        yield connection


def read_to_end(connection: socket.socket) -> bytes:
    """What the server says before it closes; fails where it does not close."""
    said = b""
    try:
        while piece := connection.recv(65_536):
            said += piece
    except ConnectionResetError:
        pass
    return said


def is_cut_off(connection: socket.socket, pieces: Iterable[bytes], pause: float = 0.0) -> bool:
    """Send one piece after the other; whether the server ends the connection meanwhile."""
    try:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
    except ConnectionError:
        return True
    return False


def head(served: Served, method: str, path: str, **headers: str) -> bytes:
    named = {"host": "x", "authorization": f"Bearer {served.root.token}", **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
    return f"{method} /api/v1{path} HTTP/1.1\r\n{lines}\r\n".encode()


@pytest.mark.parametrize("said", [b"", b"G", HALF], ids=["nothing", "a letter", "half a head"])
def test_a_head_that_does_not_come_ends_the_connection(strict: Served, said: bytes) -> None:
    with connected(strict.url) as connection:
        connection.sendall(said)
        assert read_to_end(connection) == b""


def test_a_head_that_comes_drop_by_drop_ends_the_connection(strict: Served) -> None:
    with connected(strict.url) as connection:
        connection.sendall(HALF)
        drops = (f"x-{number}: y\r\n".encode() for number in range(600))
        assert is_cut_off(connection, drops, pause=0.05)


def test_a_second_request_has_no_longer_for_its_head_than_the_first(strict: Served) -> None:
    with connected(strict.url) as connection:
        connection.sendall(HALF + b"\r\n" + HALF)
        assert read_to_end(connection).count(b"HTTP/1.1 200") == 1


def test_requests_that_come_together_are_all_answered(strict: Served) -> None:
    with connected(strict.url) as connection:
        connection.sendall((HALF + b"\r\n") * 5)
        assert read_to_end(connection).count(b"HTTP/1.1 200") == 5


def test_a_request_is_freed_with_its_connection_without_a_collection_of_garbage(strict: Served) -> None:
    def count_requests() -> int:
        return sum(isinstance(each, RequestResponseCycle) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = count_requests()  # those of other servers in this process
        assert strict.root("GET", "/health").status == 200
        wait_for(lambda: count_requests() <= before)
    finally:
        gc.enable()


def test_a_body_that_does_not_come_ends_the_connection(strict: Served) -> None:
    with connected(strict.url) as connection:
        connection.sendall(head(strict, "POST", "/teams", content_length="50") + b'{"name": "')
        assert b"HTTP/1.1 2" not in read_to_end(connection)


def test_a_body_that_comes_slowly_but_steadily_is_taken(strict: Served) -> None:
    body = b'{"name": "patient"' + b" " * 3000 + b"}"
    with connected(strict.url) as connection:
        connection.sendall(head(strict, "POST", "/teams", content_length=str(len(body)), connection="close"))
        for start in range(0, len(body), 100):  # 2,000 bytes in a second, for longer than a second
            connection.sendall(body[start : start + 100])
            time.sleep(0.05)
        assert b"HTTP/1.1 201" in read_to_end(connection)


def test_a_head_without_end_is_refused(strict: Served) -> None:
    with connected(strict.url) as connection:
        said = b""
        try:
            connection.sendall(HALF + b"x: " + b"y" * 2**22)
            said = read_to_end(connection)
        except OSError:
            pass
        assert b"HTTP/1.1 200" not in said
    with connected(strict.url) as connection:
        connection.sendall(HALF + b"x: " + b"y" * 70_000 + b"\r\n\r\n")
        assert read_to_end(connection).startswith(b"HTTP/1.1 431")


def test_trailers_without_end_are_not_kept(strict: Served) -> None:
    with connected(strict.url) as connection:
        connection.sendall(head(strict, "POST", "/teams", transfer_encoding="chunked") + b"2\r\n{}\r\n0\r\n")
        trailers = (f"x-{number}: {'y' * 1000}\r\n".encode() for number in range(100_000))
        assert is_cut_off(connection, trailers)


def test_an_answer_that_nobody_takes_ends_the_connection(strict: Served) -> None:
    with connected(strict.url) as connection:
        asked = head(strict, "GET", "/schema/openapi.json")
        # More than the buffers of both sides hold.
        assert is_cut_off(connection, (asked for _ in range(3_000)), pause=0.01)


def test_connections_that_say_nothing_make_way_for_one_that_asks(strict: Served) -> None:
    with ExitStack() as stack:
        for _ in range(3 * (LIMITS.in_all or 0)):
            stack.enter_context(connected(strict.url)).sendall(HALF)
        assert strict.nobody.get("/health")["status"] == "ok"
        assert strict.root.get("/whoami")["user"]["name"] == "root"


def test_where_every_connection_is_in_use_the_next_is_told_to_come_back(tmp_path: Path) -> None:
    limits = ConnectionLimits(in_all=3)
    with serving(settings_in(tmp_path, connections=limits)) as server, ExitStack() as stack:
        body = head(server, "POST", "/teams", content_length="50") + b"{"
        for _ in range(3):
            stack.enter_context(connected(server.url)).sendall(body)
        answer = None
        for _ in range(200):  # until the three were read
            with connected(server.url) as connection:
                connection.settimeout(0.2)
                try:
                    answer = connection.recv(65_536)
                except TimeoutError:
                    continue
            if answer:
                break
        assert answer is not None
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"retry-after: " in answer
        assert b"too_many_connections" in answer


def test_whoever_is_refused_does_not_keep_others_from_their_connection(strict: Served) -> None:
    """A body that nobody will read holds no place."""
    anonymous = b"POST /api/v1/teams HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(3 * (LIMITS.in_all or 0)):
            stack.enter_context(connected(strict.url)).sendall(anonymous)
        assert strict.nobody.get("/health")["status"] == "ok"


# 1,024 descriptors, as most machines give


def test_half_open_connections_by_the_thousand_shut_nobody_out(tmp_path: Path) -> None:
    raise_file_limit()
    words = ("--runs-at-once", "0", "--no-local-model")
    with workplace(tmp_path, *words, descriptors=1024) as lab, ExitStack() as stack:
        kept = http.client.HTTPConnection("127.0.0.1", lab.port, timeout=PATIENCE)
        for number in range(1_500):
            stack.enter_context(connected(lab.url)).sendall(HALF)
            if number % 300 == 299:
                began = time.monotonic()
                kept.request("GET", "/api/v1/health")
                assert kept.getresponse().read()
                kept.close()
                assert time.monotonic() - began < PATIENCE / 2
        assert lab.root.get("/whoami")["user"]["name"] == "root"
        assert lab.person("ada").ok("whoami").code == 0


# The table by itself


class Somebody:
    def __init__(self, address: str, *, is_local: bool = False) -> None:
        self.address = address
        self.is_local = is_local

    def drop(self) -> None:
        raise AssertionError("nobody here waits")


def test_one_address_has_a_share_and_a_trusted_proxy_has_none() -> None:
    table = ConnectionTable(ConnectionLimits(in_all=100, per_address=3, trusted_proxies=("10.1.0.0/16",)))
    strangers = [table.admit(Somebody("203.0.113.9")) for _ in range(4)]
    assert strangers[:3] == [None] * 3
    assert "--connections-per-address" in str(strangers[3])
    assert [table.admit(Somebody("203.0.113.8")), table.admit(Somebody("2001:db8::1"))] == [None, None]
    assert [table.admit(Somebody("10.1.2.3")) for _ in range(9)] == [None] * 9
    assert [table.admit(Somebody("127.0.0.1", is_local=True)) for _ in range(9)] == [None] * 9


def test_the_last_connections_are_for_this_machine() -> None:
    table = ConnectionTable(ConnectionLimits(in_all=16))
    far = [table.admit(Somebody(f"203.0.113.{number}")) for number in range(20)]
    assert far.count(None) == 14
    near = [table.admit(Somebody("127.0.0.1", is_local=True)) for _ in range(3)]
    assert near.count(None) == 2


def test_a_connection_that_is_gone_gives_its_place_back() -> None:
    table = ConnectionTable(ConnectionLimits(in_all=10, per_address=1))
    first = Somebody("203.0.113.9")
    assert table.admit(first) is None
    table.release(first)
    table.release(first)
    assert table.admit(Somebody("203.0.113.9")) is None
    assert len(table) == 1


def test_the_limit_leaves_descriptors_for_everything_else() -> None:
    assert connections_for(1024) == 412
    assert connections_for(10**6) == 10_000
