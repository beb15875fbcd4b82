"""Everything that this process and its children print, line by line.

Python's own output is passed on at once, in the context that prints it: even a process that dies the next
moment has delivered it. Output by file descriptor comes through a pipe. Knows nothing of what becomes of it.
"""

from __future__ import annotations

import array
import faulthandler
import fcntl
import io
import os
import select
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from proctor.support.lines import LineSplitter

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CHUNK_BYTES = 65_536
READING_SECONDS = 2.0
"""How long to wait for the last output; a stray process may keep the pipe open."""
STDERR = 2


class OutputCapture:
    """Stdout and stderr while a block runs: `on_line` gets whole lines, `on_chunk` bytes as they come.

    Without `on_chunk`, they pass through to where stderr went before.
    """

    def __init__(
        self, on_line: Callable[[str], None], on_chunk: Callable[[bytes], None] | None = None
    ) -> None:
        self._on_line = on_line
        self._on_chunk = on_chunk or self.pass_through
        self._streams = (sys.stdout, sys.stderr)
        self._descriptors: tuple[int, int] | None = None
        self._reader: threading.Thread | None = None
        self._pipe = -1
        self._delivery = threading.Condition()
        """Held from reading a chunk to passing on its lines."""
        self._owner = os.getpid()
        self.terminal: TextIO = sys.stderr
        """Where stderr went before: for a display."""

    def __enter__(self) -> OutputCapture:
        for stream in self._streams:
            stream.flush()
        if is_real_stderr(sys.stderr):
            self._divert_descriptors()
        sys.stdout = self._open_stream(1)
        sys.stderr = self._open_stream(STDERR)
        _active.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Read to the end, after the last output."""
        _active.remove(self)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
                if isinstance(lines := getattr(stream, "lines", None), LineStream):
                    lines.finish()
        sys.stdout, sys.stderr = self._streams
        if self._descriptors is not None:
            for target, original in zip((1, STDERR), self._descriptors, strict=True):
                os.dup2(original, target)
            assert self._reader is not None
            self._reader.join(READING_SECONDS)

    def drain(self) -> None:
        """Wait until what was printed so far has been passed on."""
        if self._reader is None or self._owner != os.getpid():
            return
        if self._delivery.acquire(timeout=READING_SECONDS):
            try:
                self._delivery.wait_for(lambda: not count_unread(self._pipe), READING_SECONDS)
            finally:
                self._delivery.release()

    def pass_through(self, chunk: bytes) -> None:
        """Write to where stderr went before."""
        with suppress(OSError, ValueError):  # a reader that went away stops nothing
            if self._descriptors is not None:
                write_all(self._descriptors[1], chunk)
            else:
                self.terminal.write(chunk.decode(errors="replace"))
                self.terminal.flush()

    def _divert_descriptors(self) -> None:
        self._descriptors = (os.dup(1), os.dup(STDERR))
        encoding, errors = sys.stderr.encoding, sys.stderr.errors
        self.terminal = open(  # noqa: SIM115 - lasts as long as the process
            self._descriptors[1], "w", encoding=encoding, errors=errors, buffering=1, closefd=False
        )
        self._pipe, writing = os.pipe()
        os.dup2(writing, 1)
        os.dup2(writing, STDERR)
        os.close(writing)
        if faulthandler.is_enabled():  # the pipe's reader dies with the process
            faulthandler.enable(self._descriptors[1])
        self._reader = threading.Thread(target=self._read, args=(self._pipe,), daemon=True)
        self._reader.start()

    def _open_stream(self, descriptor: int) -> TextIO:
        return CapturedStream(LineStream(descriptor, self._on_chunk, self._on_line))

    def _read(self, descriptor: int) -> None:
        splitter = LineSplitter()
        with open(descriptor, "rb", buffering=0) as pipe:
            readable = select.poll()
            readable.register(pipe, select.POLLIN)
            while True:
                readable.poll()
                with self._delivery:
                    chunk = pipe.read(CHUNK_BYTES)
                    if not chunk:
                        self._pipe = -1
                        break
                    self._on_chunk(chunk)
                    for line in splitter.feed(chunk):
                        self._on_line(line)
                    self._delivery.notify_all()
        for line in splitter.finish():
            self._on_line(line)


class LineStream(io.RawIOBase):
    """The raw end of a Python stream; in a forked child, a plain descriptor."""

    def __init__(
        self, descriptor: int, on_chunk: Callable[[bytes], None], on_line: Callable[[str], None]
    ) -> None:
        self._descriptor = descriptor
        self._on_chunk = on_chunk
        self._on_line = on_line
        self._owner = os.getpid()
        self._splitter = LineSplitter()
        self._lock = threading.RLock()  # a finalizer may print at any moment

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: ReadableBuffer, /) -> int:
        content = bytes(data)
        if os.getpid() != self._owner:
            return os.write(self._descriptor, content)
        self._on_chunk(content)
        with self._lock:
            lines = self._splitter.feed(content)
        for line in lines:
            self._on_line(line)
        return len(content)

    def finish(self) -> None:
        """Pass on a line that has no end."""
        if os.getpid() == self._owner:
            for line in self._splitter.finish():
                self._on_line(line)


class CapturedStream(io.TextIOWrapper):
    """A text stream whose lines are passed on."""

    def __init__(self, lines: LineStream) -> None:
        super().__init__(
            io.BufferedWriter(lines), encoding="utf-8", errors="backslashreplace", line_buffering=True
        )
        self.lines = lines


_active: list[OutputCapture] = []


def drain_output() -> None:
    """Wait until what this process and its children printed so far has been passed on."""
    for capture in _active:
        capture.drain()


def count_unread(pipe: int) -> int:
    """Bytes in a pipe that have not been read; none once it has ended."""
    if pipe < 0:
        return 0
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def is_real_stderr(stream: TextIO) -> bool:
    """Whether a stream is this process's stderr, and not something that replaced it."""
    try:
        return stream.fileno() == STDERR
    except (OSError, ValueError, AttributeError):
        return False


def write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
