"""A run may bring its own endpoint along: whatever that answers, nobody else notices."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from proctor.server.gateway import upstreams
from proctor.server.gateway.booking import plausible
from proctor.server.ledger.calls import LedgerCall
from proctor.trace import Usage
from proctor.wires import anthropic_server, chat_server
from proctor.wires.stream import MeteredStream
from tests.server.gateway.test_gateway import ASKED, WIRES, in_run, use
from tests.server.serving import Api, Served, holding_up_nobody
from tests.waiting import SECONDS, wait_for

MINE = {**ASKED, "model": "mine"}
STREAM = {"content-type": "text/event-stream"}
Reply = Callable[[BaseHTTPRequestHandler], None]


def replying(content: bytes, headers: dict[str, str], status: int = 200) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    return reply


@contextmanager
def endpoint(served: Served, reply: Reply) -> Iterator[Api]:
    """Requests of a run of Ada's whose own endpoint answers in a way of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            with suppress(OSError):  # nobody reads it any more
                reply(self)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    served.platform.upstreams._allowed_hosts = ("127.0.0.1",)
    served.user("ada")
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield in_run(served, "ada", model="mine", settings={"api_base_url": url})[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(SECONDS)


@pytest.mark.parametrize("tokens", [2**63, 10**30, 10**400, -(10**30)])
def test_a_usage_that_no_column_holds_is_booked_as_the_most_there_is(served: Served, tokens: int) -> None:
    body = {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": tokens}}
    with endpoint(served, replying(json.dumps(body).encode(), {})) as inside:
        for _ in range(3):
            assert inside("POST", "/v1/chat/completions", MINE).status == 200
        assert use(inside, "?run=run-1")["mine"]["requests"] == 3


def test_a_call_that_cannot_be_booked_takes_no_other_with_it(served_anywhere: Served) -> None:
    bob = served_anywhere.user("bob")
    meter = served_anywhere.platform.meter

    def call(name: str, tokens: int) -> LedgerCall:
        return LedgerCall(
            id=name,
            at=time.time(),
            owner="bob",
            user="bob",
            run_id=None,
            model="m",
            provider="p",
            usage=Usage(tokens, 0),
            cost=7,
        )

    async def book() -> list[BaseException | None]:
        booked = (meter.book(call(f"c{number}", 10**30 if number == 1 else 5)) for number in range(3))
        return await asyncio.gather(*booked, return_exceptions=True)

    outcomes = served_anywhere.call(book)
    assert [outcome is None for outcome in outcomes] == [True, False, True]
    assert use(bob)["m"]["requests"] == 2
    assert bob.get("/balance")["spent_usd"] == pytest.approx(14e-6)


def test_no_usage_is_beyond_what_sums_can_hold() -> None:
    most = plausible(Usage(10**30, 10**30, 10**30))
    assert most.input_tokens == most.output_tokens == most.cached_tokens == 10**9
    assert plausible(Usage(-5, -5, -5)) == Usage()
    assert plausible(Usage(7, 3, 2, 1)) == Usage(7, 3, 2, 1)


# Time and memory


def test_an_event_that_does_not_end_is_not_read_again_with_each_byte() -> None:
    stream = MeteredStream(chat_server.WIRE, hide_usage=False)
    stream.feed(b"data: " + bytes(32 * 2**20))
    begun = time.process_time()
    for _ in range(2_000):
        stream.feed(b"x")
    assert time.process_time() - begun < 1.0


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_however_they_are_cut(size: int) -> None:
    sent = (
        b'event: message_start\r\ndata: {"message":{"usage":{"input_tokens":7}}}\r\n\r\n'
        b'event: message_delta\ndata: {"usage":{"output_tokens":3}}\n\nevent: ping\r\n\r\n'
        b"event: message_stop\r\ndata: {}\r\n\r\n"
    )
    stream = MeteredStream(anthropic_server.WIRE, hide_usage=False)
    got = [stream.feed(sent[start : start + size]) for start in range(0, len(sent), size)]
    got.append(stream.end())
    told, held = (b"".join(each) for each in zip(*got, strict=True))
    assert told + held == sent.replace(b"\r\n", b"\n")
    assert held == b"event: message_stop\ndata: {}\n\n"
    assert stream.is_metered
    assert stream.spent == Usage(7, 3)


def test_a_stream_that_unpacks_to_millions_of_events_holds_nobody_up(served: Served) -> None:
    packed = gzip.compress(b"data: x\n\n" * (20 * 2**20))
    reply = replying(packed, {**STREAM, "content-encoding": "gzip"})
    with endpoint(served, reply) as inside, holding_up_nobody(served, 2.0):
        answer = inside("POST", "/v1/chat/completions", {**MINE, "stream": True})
    assert "sent over" in answer.body[-1000:]


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(("path", "_", "body"), WIRES)
def test_an_answer_of_millions_of_values_is_not_decoded(
    served: Served, path: str, _: str, body: dict[str, Any], status: int
) -> None:
    many = b'{"choices":[' + b"{}," * (10 * 2**20) + b"{}]}"
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    with (
        endpoint(served, replying(gzip.compress(many), headers, status)) as inside,
        holding_up_nobody(served, 2.0),
    ):
        answer = inside("POST", path, {**body, "model": "mine"})
    assert "JSON values" in json.dumps(answer.body)
    assert upstreams.MOST_ANSWER_VALUES < 10 * 2**20


def test_who_leaves_takes_the_request_to_an_endpoint_of_their_own_along(served: Served) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        replying(b"", STREAM)(handler)
        for _ in range(int(SECONDS / 0.05)):
            handler.wfile.write(b": still there\n\n")
            time.sleep(0.05)

    def leave(token: str) -> None:
        body = json.dumps({**MINE, "stream": True}).encode()
        with socket.create_connection(("127.0.0.1", served.platform.settings.port), SECONDS) as connection:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n"
            connection.sendall(head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")

    with endpoint(served, drip) as inside:
        for _ in range(5):
            leave(inside.token)
        upstream = served.platform.upstreams.own("run-1")
        assert upstream is not None
        wait_for(lambda: upstream.in_flight == 0, SECONDS / 4)
