"""A fast OpenAI-shaped endpoint for measuring clients, not itself.

    python mock_openai.py --port 8199 [--latency-ms 10] [--answer TEXT]

Answers POST */chat/completions with one fixed completion. GET /stats tells calls and the peak in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import cast

import uvloop


class Server(asyncio.Protocol):
    """One connection; counters are shared by all."""

    calls = 0
    in_flight = 0
    peak = 0
    latency_seconds = 0.0
    completion = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            mark = head.find(b"content-length:")
            length = int(head[mark + 15 :].split(b"\r\n", 1)[0]) if mark >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            path = self.buffer.split(b" ", 2)[1]
            self.buffer = self.buffer[end + 4 + length :]
            self.answer(path)

    def answer(self, path: bytes) -> None:
        cls = Server
        if path.endswith(b"/stats"):
            self.send(json.dumps({"calls": cls.calls, "peak": cls.peak}).encode())
        elif path.endswith(b"/models"):
            self.send(b'{"object":"list","data":[{"id":"mock","object":"model"}]}')
        else:
            cls.calls += 1
            cls.in_flight += 1
            cls.peak = max(cls.peak, cls.in_flight)
            if cls.latency_seconds:
                asyncio.get_running_loop().call_later(cls.latency_seconds, self.finish)
            else:
                self.finish()

    def finish(self) -> None:
        Server.in_flight -= 1
        self.send(Server.completion)

    def send(self, payload: bytes) -> None:
        if not self.transport.is_closing():
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            self.transport.write(head % len(payload) + payload)


def completion(answer: str) -> bytes:
    message = {"role": "assistant", "content": answer}
    return json.dumps(
        {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "mock",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        }
    ).encode()


async def serve(host: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, host, port, backlog=4096)
    bound = server.sockets[0].getsockname()[1]
    print(f"http://{host}:{bound}/v1", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--answer", default="The answer is 4")
    options = parser.parse_args()
    Server.latency_seconds = options.latency_ms / 1000
    Server.completion = completion(options.answer)
    uvloop.install()
    asyncio.run(serve(options.host, options.port))


if __name__ == "__main__":
    main()
