"""Keys: from the bytes a terminal sends to their names, read in the event loop and only while it is ours.

A sequence may come in pieces, and anything may be pasted: what is not a key of ours is dropped, and where
it arrives in one piece with letters, those are text as well. Knows nothing of what a key does.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import time
from collections.abc import Callable
from typing import TextIO

STALE_SECONDS = 0.5
"""An unfinished sequence that waited this long is none."""
MOST_READ = 1024
LONGEST_SEQUENCE = 64

TOKEN = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    rb"|\x1bO[ -~]"  # SS3
    rb"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"  # what a terminal answers to a question
    rb"|\x1b[^\[O\]PX^_]"  # with Alt
    rb"|[^\x1b]",
    re.DOTALL,
)
PASTE_STARTS, PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
BY_FINAL = {b"A": "up", b"B": "down", b"C": "right", b"D": "left", b"H": "home", b"F": "end", b"Z": "left"}
BY_NUMBER = {b"1": "home", b"7": "home", b"4": "end", b"8": "end", b"5": "page up", b"6": "page down"}
BY_BYTE = {
    b"h": "left",
    b"l": "right",
    b"\t": "right",
    b"k": "up",
    b"j": "down",
    b"q": "quit",
    b"?": "help",
    b"\r": "enter",
    b"\n": "enter",
    b"\x03": "interrupt",
    b"\x1a": "suspend",
}

HARMLESS = BY_BYTE.keys() - {b"q"}


class KeyDecoder:
    """Makes names of keys from bytes as they come."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rest = b""
        self._pasting = False
        self._heard_at = clock()
        self._text_until = 0.0

    def feed(self, data: bytes) -> list[str]:
        now = self._clock()
        if now - self._heard_at > STALE_SECONDS:
            self._rest, self._pasting = b"", False
        self._heard_at = now
        tokens = self._tokens(self._rest + data)
        letters = {token for token in tokens if len(token) == 1}
        if len(letters) > 1 and not letters <= HARMLESS:  # too fast for a person
            self._text_until = now + STALE_SECONDS
        if now < self._text_until:
            tokens = [token for token in tokens if len(token) > 1]
        return [name for token in tokens if (name := decode_key_name(token))]

    def _tokens(self, data: bytes) -> list[bytes]:
        """Whole keys without what is pasted; the beginning of another is kept for later."""
        tokens, end = [], 0
        for found in TOKEN.finditer(data):
            if found.start() != end:
                break
            token, end = found.group(), found.end()
            if token in (PASTE_STARTS, PASTE_ENDS):
                self._pasting = token == PASTE_STARTS
            elif not self._pasting:
                tokens.append(token)
        self._rest = data[end:] if len(data) - end <= LONGEST_SEQUENCE else b""
        return tokens


def decode_key_name(token: bytes) -> str:
    """The name of a key, or nothing if it is none of ours; Shift and the like make no difference."""
    if len(token) == 1:
        return BY_BYTE.get(token, "")
    if token.endswith(b"~"):
        return BY_NUMBER.get(token[2:-1].split(b";")[0], "")
    return BY_FINAL.get(token[-1:], "") if token[1:2] in (b"[", b"O") else ""


class Keyboard:
    """Reads the keys typed into a terminal."""

    def __init__(self, source: TextIO, pressed: Callable[[str], None]) -> None:
        self._file = source.fileno()
        self._pressed = pressed
        self._keys = KeyDecoder()
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._file, self._read)

    def close(self) -> None:
        """Stop reading until it is opened again: what is typed now is for another program."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._file)
        self._loop = None

    def _read(self) -> None:
        data = read_typed_bytes(self._file)
        if not data:  # the terminal is gone, or the shell's
            self.close()
        for name in self._keys.feed(data):
            self._pressed(name)


def read_typed_bytes(file: int) -> bytes:
    """What was typed; nothing while the shell has the terminal: reading then would stop this process."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN})
    try:
        return os.read(file, MOST_READ)
    except OSError:
        return b""
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_same_terminal(source: TextIO | None, stream: TextIO) -> bool:
    """Whether keys typed into `source` are typed on the terminal that `stream` shows."""
    try:
        if source is None or not (source.isatty() and stream.isatty()):
            return False
        read, written = os.fstat(source.fileno()), os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return stat.S_ISCHR(read.st_mode) and read.st_rdev == written.st_rdev
