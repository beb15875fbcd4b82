"""A provider for tests: speaks three wires on loopback, remembers what it was sent, fails on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from tests.waiting import SECONDS

KEY = "sk-provider-secret-0123456789"

CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "model": "big-1",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Four."}}],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 0}},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "big-1",
    "output": [
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Four.", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 1000, "output_tokens": 200},
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "big-1",
    "content": [{"type": "text", "text": "Four."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1000, "output_tokens": 200},
}


def event(data: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def chat_chunk(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return event({"object": "chat.completion.chunk", "choices": [choice], "usage": None})


def response_delta(text: str) -> bytes:
    return event({"type": "response.output_text.delta", "delta": text}, "response.output_text.delta")


def block_delta(text: str) -> bytes:
    delta = {"type": "text_delta", "text": text}
    return event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")


STREAMS: dict[str, list[bytes]] = {
    "/chat/completions": [
        chat_chunk("Fo"),
        chat_chunk("ur."),
        event({"object": "chat.completion.chunk", "choices": [], "usage": CHAT["usage"]}),
        event("[DONE]"),
    ],
    "/responses": [
        event({"type": "response.created", "response": {**RESPONSE, "usage": None}}, "response.created"),
        response_delta("Fo"),
        response_delta("ur."),
        event({"type": "response.completed", "response": RESPONSE}, "response.completed"),
    ],
    "/messages": [
        event(
            {"type": "message_start", "message": {**MESSAGE, "content": [], "usage": {"input_tokens": 1000}}},
            "message_start",
        )
        + event(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            "content_block_start",
        ),
        block_delta("Fo"),
        block_delta("ur."),
        event({"type": "content_block_stop", "index": 0}, "content_block_stop"),
        event(
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 200}},
            "message_delta",
        ),
        event({"type": "message_stop"}, "message_stop"),
    ],
}
WHOLE = {"/chat/completions": CHAT, "/responses": RESPONSE, "/messages": MESSAGE}


class Provider:
    """What it was sent, and what it is to answer next."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.failure: tuple[int, bytes, dict[str, str]] | None = None
        self.go_on = threading.Event()
        """Streams wait for this before their third event."""
        self.breaks_off = False
        """Streams end before it."""
        self.go_on.set()
        self.raw: list[bytes] = []
        """Requests as they came."""
        self.usage: Any = ...
        """Told instead of the usual one, by every wire; None: a null."""
        self.answering = threading.Event()
        """Whole answers wait for this."""
        self.answering.set()
        self.in_flight = 0
        self.most_in_flight = 0
        self._counting = threading.Lock()

    def count(self, change: int) -> None:
        with self._counting:
            self.in_flight += change
            self.most_in_flight = max(self.most_in_flight, self.in_flight)

    @property
    def last(self) -> dict[str, Any]:
        return self.bodies[-1]


class Handler(BaseHTTPRequestHandler):
    provider: ClassVar[Provider]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        provider = self.provider
        raw = self.rfile.read(int(self.headers["content-length"]))
        body = json.loads(raw)
        provider.raw.append(raw)
        provider.bodies.append(body)
        provider.headers.append({name.lower(): value for name, value in self.headers.items()})
        path = self.path.removeprefix("/v1")
        if provider.failure is not None:
            status, content, headers = provider.failure
            self.reply(status, content, headers)
        elif body.get("stream"):
            self.stream(STREAMS[path], bool((body.get("stream_options") or {}).get("include_usage")))
        else:
            provider.count(1)
            provider.answering.wait(SECONDS)
            provider.count(-1)
            usage = {} if provider.usage is ... else {"usage": provider.usage}
            self.reply(200, json.dumps({**WHOLE[path], **usage}).encode(), {})

    def reply(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self, events: list[bytes], tells_usage: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for place, each in enumerate(events):
            if place == 2 and self.provider.breaks_off:
                return
            if place == 2:
                self.provider.go_on.wait(SECONDS)
            is_extra = self.path.endswith("/chat/completions") and b'"choices": []' in each
            if not is_extra or (tells_usage and self.provider.usage is ...):
                self.wfile.write(each)
                self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextmanager
def providing() -> Iterator[Provider]:
    handler = type("Bound", (Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    handler.provider = Provider(f"http://127.0.0.1:{server.server_address[1]}/v1")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield handler.provider  # type: ignore[attr-defined]
    finally:
        handler.provider.go_on.set()  # type: ignore[attr-defined]
        handler.provider.answering.set()  # type: ignore[attr-defined]
        server.shutdown()
        server.server_close()
        thread.join(10)


REGISTRY = """
[[endpoint]]
endpoint_id = "chatty"
model = "big-1"
url = "{url}"
key = "TEST_PROVIDER_KEY"
price = {{ input = 1.0, output = 5.0 }}

[[endpoint]]
endpoint_id = "thinker"
model = "big-1"
url = "{url}"
key = "TEST_PROVIDER_KEY"
type = "openai_responses"
price = {{ input = 1.0, output = 5.0 }}

[[endpoint]]
endpoint_id = "poet"
model = "big-1"
url = "{url}"
key = "TEST_PROVIDER_KEY"
type = "anthropic_messages"
price = {{ input = 1.0, output = 5.0 }}

[[endpoint]]
endpoint_id = "unpriced"
model = "nobody-knows-its-price"
url = "{url}"
key = "TEST_PROVIDER_KEY"

[[endpoint]]
endpoint_id = "keyless"
model = "big-1"
url = "{url}"
key = "TEST_MISSING_KEY"

[[endpoint]]
endpoint_id = "echo"
model = "echo"
type = "scripted"
"""
COST = (1000 * 1.0 + 200 * 5.0) / 1e6
"""Of one answer, in dollars."""
