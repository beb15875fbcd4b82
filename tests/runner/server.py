"""Stands for a server's routes for hosts and runs: keeps what it is told, and answers as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import msgspec

from proctor.api.common import BASE
from proctor.api.runner import Ending, LostRun, Report


class Answer(NamedTuple):
    status: int
    body: bytes = b"{}"


Answering = Callable[[str, bytes], Answer]
"""What a path and a body are answered with."""


class Hearing(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answering: Answering) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answering = answering
        self.heard: list[tuple[str, bytes]] = []
        """What was told and taken."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def reports(self) -> list[Report]:
        bodies = [body for path, body in self.heard if path == "/runner/reports"]
        return [msgspec.json.decode(body, type=Report) for body in bodies]

    @property
    def losses(self) -> list[LostRun]:
        bodies = [body for path, body in self.heard if path.endswith("/lost")]
        return [msgspec.json.decode(body, type=LostRun) for body in bodies]

    @property
    def ending(self) -> Ending:
        (body,) = [body for path, body in self.heard if path == "/runner/end"]
        return msgspec.json.decode(body, type=Ending)

    @property
    def log(self) -> list[tuple[str, str]]:
        return [(line.level, line.text) for report in self.reports for line in report.logs]


class Handler(BaseHTTPRequestHandler):
    server: Hearing

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.removeprefix(BASE).partition("?")[0]
        answer = self.server.answering(path, body)
        if answer.status < 300:
            self.server.heard.append((path, body))
        self.send_response(answer.status)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def do_GET(self) -> None:
        answer = self.server.answering(self.path.removeprefix(BASE).partition("?")[0], b"")
        self.send_response(answer.status)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def hearing(answering: Answering = lambda path, body: Answer(200)) -> Iterator[Hearing]:
    with Hearing(answering) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
