"""A git server over HTTP on this machine: git's own program behind Python's server, with a token."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


class GitServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path, token: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.token = token
        self.redirect = ""
        """Where every request is sent instead."""
        self.asked = threading.Event()
        self.answers = threading.Event()
        """Requests wait for it."""
        self.answers.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: GitServer

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.asked.set()
        self.server.answers.wait(60)
        wanted = "Basic " + base64.b64encode(f"x-access-token:{self.server.token}".encode()).decode()
        if self.server.redirect:
            self.send_response(302)
            self.send_header("location", self.server.redirect + self.path)
            self.end_headers()
        elif self.headers.get("authorization") != wanted:
            self.send_response(401)
            self.send_header("www-authenticate", "Basic")
            self.end_headers()
        else:
            self.run_git(body)

    def run_git(self, body: bytes) -> None:
        parts = urlsplit(self.path)
        variables = {
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
            "PATH": os.environ["PATH"],
        }
        done = subprocess.run(
            ("git", "http-backend"), input=body, env=variables, capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked was killed
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def git_server(folder: Path, token: str = "letmein") -> Iterator[GitServer]:
    with GitServer(folder, token) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            yield server
        finally:
            server.answers.set()
            server.shutdown()
            serving.join(10)
