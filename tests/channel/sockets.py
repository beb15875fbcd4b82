"""Play a row of the table on raw sockets: nothing of the library's own client is used."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tests.channel.table import SAME, Row, Step
from tests.waiting import SECONDS

PATIENCE_SECONDS = 60.0


class Line:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self.file = self.socket.makefile("rb")

    def send(self, data: bytes, in_bytes: bool = False) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in [data[place : place + 1] for place in range(len(data))] if in_bytes else [data]:
            with suppress(ConnectionError):  # it may be told off, and closed, before it has said everything
                self.socket.sendall(piece)

    def ask(self, frame: Mapping[str, Any]) -> Any:
        self.send(json.dumps(frame).encode() + b"\n")
        return self.hear()

    def hear(self) -> Any:
        """The next frame; None if the connection has ended."""
        try:
            line = self.file.readline()
        except ConnectionError:
            return None
        return json.loads(line) if line else None

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class Conversation:
    """A row, as far as it has been played."""

    def __init__(self, port: int, with_theirs: bool = False) -> None:
        self.port = port
        self.with_theirs = with_theirs
        self.lines: dict[str, Line] = {}
        self.kept: dict[str, Any] = {}
        self.is_over = False

    def play(self, row: Row) -> None:
        try:
            for step in row.steps:
                if not self.is_over:
                    self.take(step)
        finally:
            for line in self.lines.values():
                line.close()

    def take(self, step: Step) -> None:
        if step.who not in self.lines:
            self.lines[step.who] = Line(self.port)
        line = self.lines[step.who]
        if step.hangs_up:
            line.close()
            del self.lines[step.who]
            return
        wanted, ends = self.expected(step)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            if step.sent is not None:
                line.send(self.spelled(step.sent), step.in_bytes)
            heard = [line.hear() for _ in wanted]
            problem = self.mismatch(list(wanted), heard)
            if problem is None or not step.again or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        assert problem is None, problem
        if ends:
            assert line.hear() is None, "the connection should have ended"
            self.is_over = step.they_end and self.with_theirs

    def expected(self, step: Step) -> tuple[Sequence[Any], bool]:
        if not self.with_theirs:
            return step.heard, step.ends
        theirs = step.theirs
        if theirs is SAME:
            return step.heard, step.ends or step.they_end
        heard = theirs if isinstance(theirs, tuple) else (theirs,)
        return heard, step.they_end or (step.ends and theirs == ())

    def spelled(self, sent: bytes | dict[str, Any]) -> bytes:
        if isinstance(sent, bytes):
            return sent
        text = json.dumps(sent)
        for name, value in self.kept.items():
            text = text.replace(f'"${name}"', json.dumps(value))
        return text.encode() + b"\n"

    def mismatch(self, wanted: Any, heard: Any) -> str | None:
        """What is not as it should be."""
        if isinstance(wanted, re.Pattern):
            fits = not wanted.pattern or (isinstance(heard, str) and wanted.search(heard) is not None)
            return None if fits else f"{shown(heard)} is not like {wanted.pattern!r}"
        if isinstance(wanted, str) and wanted.startswith("$"):
            if heard is not None and self.kept.setdefault(wanted[1:], heard) == heard:
                return None
            return f"{shown(heard)} is not the {wanted[1:]} that was kept"
        if isinstance(wanted, dict) and isinstance(heard, dict):
            if wanted.keys() != heard.keys():
                return f"{shown(heard)} instead of {shown(wanted)}"
            parts = [self.mismatch(wanted[name], heard[name]) for name in wanted]
            return next((part for part in parts if part is not None), None)
        if isinstance(wanted, list) and isinstance(heard, list) and len(wanted) == len(heard):
            parts = [self.mismatch(*pair) for pair in zip(wanted, heard, strict=True)]
            return next((part for part in parts if part is not None), None)
        return None if wanted == heard else f"{shown(heard)} instead of {shown(wanted)}"


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 400 else f"{text[:200]}…{text[-100:]}"
