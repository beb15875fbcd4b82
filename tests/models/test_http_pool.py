"""Requests over pooled connections, against servers on this machine that misbehave in every way."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from proctor.models.http_pool import HttpPool

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LITTLE = 4096
HOST = "models.example.com"


async def read_head(reader: asyncio.StreamReader) -> list[str]:
    return (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()


def open_narrow_socket(address: Any) -> socket.socket:
    """One that cannot take a large request at once."""
    opened = socket.socket(*address[:3])
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LITTLE)
    return opened


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    """The port of a server whose connections end with the block."""
    connections: set[asyncio.Task[None]] = set()

    async def serve_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await serve(reader, writer)
        except (asyncio.CancelledError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    here = socket.create_server(("127.0.0.1", 0))
    here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LITTLE)
    async with await asyncio.start_server(serve_and_close, sock=here):
        yield here.getsockname()[1]
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections)
        await asyncio.sleep(0)


def exchange(serve: Serve, *bodies: bytes, headers: dict[str, str] | None = None) -> list[str]:
    """The status and the text of each answer, all from one pool."""

    async def main() -> list[str]:
        async with listening(serve) as port:
            pool = HttpPool({"x-sent": "always"}, 5, open_narrow_socket)
            url = URL(f"http://127.0.0.1:{port}/v1")
            try:
                return [await ask(pool, url, body, headers) for body in bodies]
            finally:
                await pool.close()

    return asyncio.run(asyncio.wait_for(main(), 20))


async def ask(pool: HttpPool, url: URL, body: bytes, headers: dict[str, str] | None) -> str:
    response = await pool.send("POST", url, body, headers)
    try:
        return f"{response.status} {(await response.content.read()).decode()}"
    finally:
        response.release()


def test_a_body_of_many_megabytes_arrives_whole() -> None:
    body = bytes(range(256)) * 20_000
    received = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await read_head(reader)
        received = await reader.readexactly(len(body))
        writer.write(OK)

    assert exchange(serve, body) == ["200 ok"]
    assert received == body


@pytest.mark.parametrize("size", [900_000, 20_000_000])
def test_a_server_that_refuses_a_large_request_before_reading_it_is_heard(size: int) -> None:
    """What is left of the request is not sent to whoever has the connection next."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        head = await read_head(reader)
        if f"Content-Length: {size}" in head:
            writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nlarge")
            await asyncio.Event().wait()
        else:
            writer.write(OK)

    assert exchange(serve, b"x" * size, b"small") == ["413 large", "200 ok"]
    assert connections == 2


def test_an_announcement_is_not_taken_for_the_answer() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)

    assert exchange(serve, b"{}") == ["200 ok"]


def test_a_header_of_one_request_replaces_the_one_that_all_have() -> None:
    heads: list[list[str]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            heads.append(await read_head(reader))
            await reader.readexactly(2)
            writer.write(OK)

    exchange(serve, b"{}", headers={"X-Sent": "once", "X-Own": "too"})
    exchange(serve, b"{}", headers={"X-Own": "too"})

    replaced, added = ([line for line in head if line.lower().startswith("x-")] for head in heads)
    assert sorted(map(str.lower, replaced)) == ["x-own: too", "x-sent: once"]
    assert sorted(map(str.lower, added)) == ["x-own: too", "x-sent: always"]


def test_a_header_with_a_line_break_is_not_sent() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)

    with pytest.raises(ValueError, match="line break"):
        exchange(serve, b"{}", headers={"x-name": "a\r\nx-forged: b"})


def test_what_is_no_http_is_an_error_of_the_client() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")

    with pytest.raises(aiohttp.ClientError):
        exchange(serve, b"{}")


def test_a_request_goes_through_the_proxy_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    heads: list[list[str]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await read_head(reader))
        writer.write(OK)

    login = tmp_path / "netrc"
    login.write_text(f"machine {HOST} login bob password open\n")
    login.chmod(0o600)
    monkeypatch.setenv("NETRC", str(login))
    monkeypatch.setenv("no_proxy", "")

    async def main() -> str:
        async with listening(serve) as port:
            monkeypatch.setenv("http_proxy", f"http://ada:secret@127.0.0.1:{port}")
            pool = HttpPool({}, connect_seconds=5, trust_env=True)
            try:
                return await ask(pool, URL(f"http://{HOST}/v1/chat"), b"{}", None)
            finally:
                await pool.close()

    assert asyncio.run(main()) == "200 ok"
    (head,) = heads
    assert head[0] == f"POST http://{HOST}/v1/chat HTTP/1.1"
    assert f"Host: {HOST}" in head
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'ada:secret').decode()}" in head
    assert f"Authorization: Basic {base64.b64encode(b'bob:open').decode()}" in head
