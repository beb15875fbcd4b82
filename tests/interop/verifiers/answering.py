"""A model on this machine whose answers follow from the conversation alone, and from how often it was seen.

The same request for the n-th time gets the n-th of its answers, so that two tools that ask the same questions
in the same order get the same answers.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Message = dict[str, Any]
Answers = Callable[[list[Message]], Sequence[str | Message]]
"""The answers to a conversation: texts, or messages."""


@contextmanager
def answering(answers: Answers) -> Iterator[str]:
    """The base URL of the model."""
    seen: Counter[str] = Counter()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            messages = [plain(each) for each in body["messages"]]
            key = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()
            with lock:
                number = seen[key]
                seen[key] += 1
            offered = answers(messages)
            document = completion(offered[number % len(offered)], key)
            if body.get("stream"):
                self.send(streamed(document), "text/event-stream")
            else:
                self.reply(document)

        def do_GET(self) -> None:
            self.reply({"data": []})

        def reply(self, body: dict[str, Any]) -> None:
            self.send(json.dumps(body).encode(), "application/json")

        def send(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def plain(message: Message) -> Message:
    """What two tools must send alike: role, text and the names of tool calls."""
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    calls = [call["function"]["name"] for call in message.get("tool_calls") or ()]
    return {"role": message["role"], "content": content, "tool_calls": calls}


def completion(answer: str | Message, key: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
    return {
        "id": key[:12],
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def streamed(document: dict[str, Any]) -> bytes:
    """A completion as server-sent events: all of it in one, the usage in another."""
    choice = document["choices"][0]
    calls = [
        {"index": number, **call} for number, call in enumerate(choice["message"].get("tool_calls") or ())
    ]
    delta = {**choice["message"], **({"tool_calls": calls} if calls else {})}
    head = {**document, "object": "chat.completion.chunk", "usage": None}
    whole = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": choice["finish_reason"]}]}
    events = [whole, {**head, "choices": [], "usage": document["usage"]}]
    lines = [*(json.dumps(event) for event in events), "[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def tool_call(name: str, arguments: dict[str, Any]) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{name}", "type": "function", "function": function}],
    }
