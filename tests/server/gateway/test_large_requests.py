"""One caller's large request holds nobody else up, and a provider's odd answer is still an answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.server.gateway.bodies import INLINE_BYTES, MOST_VALUES
from proctor.support.json_values import ValueCounter
from tests.server.gateway.provider import Provider
from tests.server.gateway.test_gateway import ASKED, WIRES
from tests.server.serving import Served

MESSAGE = b'{"role":"user","content":"a"}'
LONGEST_TURN = 0.5
"""CPU seconds that the loop's own thread may take between two beats; it took more than five."""


class Heart:
    """The most CPU time that a loop's thread took between two of its turns."""

    longest = 0.0


@contextmanager
def beating(served: Served) -> Iterator[Heart]:
    heart = Heart()

    async def beat() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            heart.longest, before = max(heart.longest, now - before), now

    beats = asyncio.run_coroutine_threadsafe(beat(), served.platform.loop)
    try:
        yield heart
    finally:
        beats.cancel()


def many_messages(size: int, name: bytes = b"messages") -> bytes:
    number = size // (len(MESSAGE) + 1)
    return b'{"model":"poet","max_tokens":5,"%s":[' % name + b",".join([MESSAGE] * number) + b"]}"


@pytest.mark.parametrize(
    "path", ["/v1/messages/count_tokens", "/v1/messages", "/v1/chat/completions", "/v1/responses"]
)
@pytest.mark.parametrize("model", ["chatty", "thinker", "poet"])
def test_millions_of_small_messages_hold_nobody_up(
    served: Served, provider: Provider, path: str, model: str
) -> None:
    name = b"input" if path == "/v1/responses" else b"messages"
    body = many_messages(30 * 2**20, name).replace(b'"poet"', b'"%s"' % model.encode())

    with beating(served) as heart:
        answer = served.root("POST", path, data=body)

    assert answer.status == 413
    assert f"{MOST_VALUES:,} JSON values" in json.dumps(answer.body)
    assert heart.longest < LONGEST_TURN
    assert provider.bodies == []


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/messages"])
@pytest.mark.parametrize("size", [INLINE_BYTES, 500_000])
def test_as_many_messages_as_are_allowed_hold_nobody_up(served: Served, path: str, size: int) -> None:
    with beating(served) as heart:
        answer = served.root("POST", path, data=many_messages(size).replace(b'"poet"', b'"chatty"'))

    assert answer.status == 200
    assert heart.longest < LONGEST_TURN


def test_too_many_messages_and_tools_are_counted_out(served: Served) -> None:
    messages = served.root("POST", "/v1/messages", data=many_messages(700_000))
    tools = [{"type": "function", "function": {"name": "f"}}] * 1025
    offered = served.root("POST", "/v1/chat/completions", {**ASKED, "tools": tools})

    assert (messages.status, offered.status) == (413, 413)
    assert "one request may have 20,000" in json.dumps(messages.body)
    assert "one request may have 1,024" in json.dumps(offered.body)


def test_one_long_text_is_as_good_as_before(served: Served, provider: Provider) -> None:
    text = '{"a": [1, 2]} \\" ' * 600_000

    with beating(served) as heart:
        served.root.ok(
            "POST", "/v1/chat/completions", {**ASKED, "messages": [{"role": "user", "content": text}]}
        )

    assert provider.last["messages"][0]["content"] == text
    assert heart.longest < LONGEST_TURN


values = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a"\\,[{ \n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='b"\\,'), inner),
)


def count(value: Any) -> int:
    if isinstance(value, list):
        return 1 + sum(map(count, value))
    return 1 + sum(map(count, value.values())) if isinstance(value, dict) else 1


@given(values, st.integers(1, 7))
def test_values_are_counted_however_the_text_is_cut(value: Any, size: int) -> None:
    text = json.dumps(value).encode()
    counter = ValueCounter()
    for start in range(0, len(text), size):
        counter.feed(text[start : start + size])

    assert count(value) <= counter.values <= 2 * count(value)


# A provider's odd answers


@pytest.mark.parametrize(
    "told",
    [
        {"type": "bad\r\nset-cookie: a=b", "message": "no\r\nway"},
        {"code": "ünïcødé \u202e 漢", "message": "x"},
        {"type": "x" * 100_000, "message": "x" * 100_000},
        {"error": "text\r\n\r\nHTTP/1.1 200 OK"},
    ],
)
def test_a_providers_error_with_line_breaks_is_still_an_answer(
    served: Served, provider: Provider, told: dict[str, Any]
) -> None:
    provider.failure = (400, json.dumps(told).encode(), {})

    for path, _, body in WIRES:
        for model in ("chatty", "thinker", "poet"):
            answer = served.root("POST", path, {**body, "model": model})
            assert answer.status == 400
            assert answer.body["error"]["message"]
            assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("status", [599, 600, 999])
@pytest.mark.parametrize("content", [b'{"error": {"message": "odd"}}', b"odd"])
def test_a_status_that_no_server_can_send_is_a_bad_gateway(
    served: Served, provider: Provider, status: int, content: bytes
) -> None:
    provider.failure = (status, content, {})

    answer = served.root("POST", "/v1/chat/completions", ASKED)

    assert answer.status == (status if status < 600 else 502)


@pytest.mark.parametrize("wait", ["inf", "nan", "1e400", "-5", "soon", "²", "Thu, 01 Jan 9999 00:00:00 GMT"])
@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms"])
def test_a_wait_that_is_no_time_is_still_an_answer(
    served: Served, provider: Provider, name: str, wait: str
) -> None:
    provider.failure = (429, b"slow down", {name: wait})

    for path, _, body in WIRES:
        assert served.root("POST", path, {**body, "model": "chatty"}).status == 429
