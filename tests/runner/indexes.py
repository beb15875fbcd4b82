"""A package index on the loopback address, as an operator may have one: with a password, or misbehaving."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

USER, PASSWORD = "operator", "index-password"


class PackageIndex(ThreadingHTTPServer):
    """Serves a folder's files as an index by PEP 503 and remembers what was asked for."""

    daemon_threads = True

    def __init__(
        self, folder: Path, *, private: bool = False, silent: bool = False, endless: bool = False
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.private = private
        self.silent = silent
        self.endless = endless
        self.asked: list[str] = []
        self.closing = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        """With the credentials, as an operator would configure it."""
        who = f"{USER}:{PASSWORD}@" if self.private else ""
        return f"http://{who}127.0.0.1:{self.server_port}/simple/"


class Handler(BaseHTTPRequestHandler):
    server: PackageIndex

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.server.silent:
            self.server.closing.wait(60)
            return
        expected = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.server.private and self.headers.get("authorization") != f"Basic {expected}":
            self.answer(401, b"", ("www-authenticate", 'Basic realm="index"'))
            return
        if self.path.startswith("/simple/"):
            self.answer_page(self.path.removeprefix("/simple/").strip("/"))
        elif self.server.endless:
            self.answer_without_end()
        else:
            file = self.server.folder / self.path.rpartition("/")[2]
            self.answer(200, file.read_bytes()) if file.is_file() else self.answer(404, b"")

    def answer_page(self, project: str) -> None:
        files = sorted(self.server.folder.glob(f"{project.replace('-', '_')}-*"))
        links = "".join(f'<a href="/files/{file.name}">{file.name}</a>' for file in files)
        self.answer(200 if files else 404, f"<!DOCTYPE html><html><body>{links}</body></html>".encode())

    def answer_without_end(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            while not self.server.closing.is_set():
                self.wfile.write(bytes(2**20))
        except OSError:
            return

    def answer(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.send_header("cache-control", "max-age=86400")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def package_index(
    folder: Path, *, private: bool = False, silent: bool = False, endless: bool = False
) -> Iterator[PackageIndex]:
    with PackageIndex(folder, private=private, silent=silent, endless=endless) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()
