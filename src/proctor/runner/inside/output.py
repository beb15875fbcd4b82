"""Turn everything the process prints into log lines; the host still sees it, as the last output of a crash.

Python's own output goes to the host at once, in the thread that prints it: even a process that dies the next
moment has delivered it. Output by file descriptor comes through a pipe. Knows nothing of servers.
"""

from __future__ import annotations

import faulthandler
import io
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

ReportLine = Callable[[str, str], None]
"""Takes a text and a level; called from other threads."""


class OutputCapture:
    """Stdout and stderr of this process, line by line."""

    def __init__(self, report_line: ReportLine) -> None:
        self._report_line = report_line
        self._original = os.dup(2)
        self._streams = (sys.stdout, sys.stderr)
        reading, writing = os.pipe()
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        os.close(writing)
        faulthandler.enable(self._original)
        sys.stdout = text_stream(LineStream(1, self.forward))
        sys.stderr = text_stream(LineStream(2, self.forward))
        self._thread = threading.Thread(target=self._read, args=(reading,), daemon=True)
        self._thread.start()

    def forward(self, raw: bytes) -> None:
        """One line, with its line ending."""
        os.write(self._original, raw)
        text = raw.decode(errors="replace").rstrip("\r\n")
        if text.strip():
            self._report_line(text, "PRINT")

    def _read(self, descriptor: int) -> None:
        with open(descriptor, "rb") as stream:
            for raw in stream:
                self.forward(raw)

    def close(self) -> None:
        """Read to the end, after the last output."""
        for stream in (sys.stdout, sys.stderr, *self._streams):
            stream.flush()
        sys.stdout, sys.stderr = self._streams
        os.dup2(self._original, 1)
        os.dup2(self._original, 2)
        self._thread.join(2.0)


class LineStream(io.RawIOBase):
    """The raw end of a Python stream: forwards whole lines; in a forked child, writes them."""

    def __init__(self, descriptor: int, forward: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._forward = forward
        self._owner = os.getpid()
        self._rest = b""
        self._lock = threading.Lock()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: ReadableBuffer, /) -> int:
        content = bytes(data)
        if os.getpid() != self._owner:
            return os.write(self._descriptor, content)
        with self._lock:
            *whole, self._rest = (self._rest + content).split(b"\n")
        for line in whole:
            self._forward(line + b"\n")
        return len(content)

    def flush(self) -> None:
        """An incomplete line waits for its end."""

    def close(self) -> None:
        if self._rest and os.getpid() == self._owner:
            rest, self._rest = self._rest, b""
            self._forward(rest + b"\n")
        super().close()


def text_stream(lines: LineStream) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(lines), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )


class LogForwarder(logging.Handler):
    """Forwards log records with their level instead of as output."""

    def __init__(self, report_line: ReportLine) -> None:
        super().__init__(logging.INFO)
        self._forward = report_line

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._forward(self.format(record), record.levelname)
        except Exception:  # a message that does not match its arguments
            self.handleError(record)
