"""Nobody makes this server connect to a place that is not on the public internet."""

from __future__ import annotations

import asyncio
import socket

import pytest

from proctor.config.endpoints import Endpoint
from proctor.errors import UnreachableError
from proctor.server.gateway.outbound import check_endpoint_url, open_public_socket
from proctor.server.gateway.upstreams import Upstreams
from proctor.server.problems import InvalidError


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8700/v1",
        "http://localhost/v1",
        "http://[::1]/v1",
        "http://[::ffff:127.0.0.1]/v1",
        "http://127.1/v1",
        "http://2130706433/v1",
        "http://0x7f000001/v1",
        "http://0/v1",
        "ftp://example.com/v1",
        "file:///etc/passwd",
        "gopher://127.0.0.1",
        "http://user:secret@127.0.0.1/v1",
        "https://no-such-host.invalid/v1",
    ],
)
def test_an_endpoint_inside_is_refused_before_a_run_starts(url: str) -> None:
    with pytest.raises(InvalidError) as refused:
        asyncio.run(check_endpoint_url(url, ()))
    assert "secret" not in str(refused.value)


def test_the_operator_may_allow_a_host() -> None:
    asyncio.run(check_endpoint_url("http://127.0.0.1:9/v1", ("127.0.0.1",)))


def test_a_name_that_turns_to_the_inside_later_is_not_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: the check saw another address than the connection does."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    endpoint = Endpoint(model="m", url=f"http://models.example.com:{port}/v1")

    async def ask() -> None:
        upstreams = Upstreams(())
        upstream = await upstreams.open_own("run-1", endpoint, {})
        try:
            async with upstream.passing("/chat/completions", b"{}", None):
                pass
        finally:
            await upstreams.close()

    with pytest.raises(UnreachableError, match="public internet"):
        asyncio.run(ask())

    listening.settimeout(0.05)
    with pytest.raises(TimeoutError):
        listening.accept()
    listening.close()


def test_a_socket_is_made_for_public_addresses_only() -> None:
    open_public_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("1.1.1.1", 443))).close()
    with pytest.raises(OSError, match="public"):
        open_public_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 443)))


def test_an_endpoint_that_points_elsewhere_is_not_followed() -> None:
    async def ask(port: int) -> int:
        upstreams = Upstreams(("127.0.0.1",))
        endpoint = Endpoint(model="m", url=f"http://127.0.0.1:{port}/v1")
        upstream = await upstreams.open_own("run-1", endpoint, {})
        try:
            async with upstream.passing("/chat/completions", b"{}", None) as answer:
                return answer.status
        finally:
            await upstreams.close()

    async def main() -> tuple[int, int]:
        inside = 0

        async def count(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal inside
            inside += 1
            writer.close()

        async def point(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            there = f"http://localhost:{second.sockets[0].getsockname()[1]}/"
            writer.write(f"HTTP/1.1 307 See there\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
            writer.close()

        second = await asyncio.start_server(count, "127.0.0.1", 0)
        first = await asyncio.start_server(point, "127.0.0.1", 0)
        async with first, second:
            return await ask(first.sockets[0].getsockname()[1]), inside

    assert asyncio.run(main()) == (307, 0)
