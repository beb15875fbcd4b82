"""A part of the terminal that is drawn again and again, and is gone when it is closed.

Between frames the cursor rests at the top left of the drawn part. Terminals keep the cursor with its text
when they are resized or scrolled, so the next frame starts at the right place whatever happened meanwhile,
and clearing from there leaves nothing behind. Knows nothing of what is drawn.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TextIO, cast

START_FRAME = "\x1b[?2026h\x1b[?7l\r"  # shown all at once, and never wrapped
END_FRAME = "\x1b[?7h\x1b[?2026l"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
HEAR_PASTES, IGNORE_PASTES = "\x1b[?2004h", "\x1b[?2004l"  # a paste is marked as one
ENTER_ALTERNATE, LEAVE_ALTERNATE = "\x1b[?1049h\x1b[H", "\x1b[?1049l"
CLEAR_LINE, CLEAR_BELOW = "\x1b[K", "\x1b[J"
# Line by line, because tmux files what is cleared from the top of the screen down in its history.
CLEAR_ALL = f"\r\x1b7{CLEAR_LINE}\x1b[B{CLEAR_BELOW}\x1b8"

LOCAL, CONTROLS = 3, 6  # places in what termios hands out


class Screen:
    """Draws lines in place on one terminal; with `keys` it is set up for reading them one by one."""

    def __init__(self, stream: TextIO, fullscreen: bool = False, keys: bool = False) -> None:
        self._stream = stream
        self._file = stream.fileno()
        self._fullscreen = fullscreen
        self._keys = keys
        self._signals = True
        self._open = False
        self._modes: list[Any] | None = None
        self._shown: tuple[object, ...] = ()

    def close(self) -> None:
        """Give the terminal back as it was, until something is drawn again."""
        if not self._open:
            return
        self._open = False
        if self.is_ours():  # or the shell has put it in order already
            pastes = IGNORE_PASTES if self._keys else ""
            alternate = LEAVE_ALTERNATE if self._fullscreen else ""
            self._write(CLEAR_ALL + SHOW_CURSOR + pastes + alternate)
            self._set_modes(self._modes)
        self._modes = None

    def wake(self) -> None:
        """Draw everything again: another program may have used the terminal meanwhile."""
        if self._open and self.is_ours():
            self._shown = ()
            self._disable_echo()

    def take_signals(self) -> None:
        """From now on Ctrl-C and Ctrl-Z are keys like others."""
        self._signals = False
        self.wake()

    def size(self) -> tuple[int, int]:
        """Columns and lines that can be drawn on; the last column stays free."""
        try:
            columns, lines = os.get_terminal_size(self._file)
        except OSError:
            columns, lines = 80, 24
        return max(1, (columns or 80) - 1), max(1, lines or 24)

    def ready(self) -> bool:
        """Whether the terminal is ours and takes text now: one halted with Ctrl-S must not halt the run."""
        if not self.is_ours():
            return False
        poll = select.poll()
        poll.register(self._file, select.POLLOUT)
        return bool(poll.poll(0))

    def is_ours(self) -> bool:
        """A background job must leave the terminal to the shell."""
        try:
            return os.tcgetpgrp(self._file) == os.getpgrp()
        except OSError:  # not a controlling terminal, so any process may write to it
            return True

    def draw(self, lines: Sequence[str], above: Sequence[str] = ()) -> None:
        """Show `lines` in place of those shown before, and leave `above` standing over them for good."""
        if not self._open:
            self._start()
        frame = (self.size(), *lines)
        if frame == self._shown and not above:
            return
        self._shown = frame
        printed = "".join(f"\r{line}{CLEAR_LINE}\r\n" for line in above)
        body = f"{CLEAR_LINE}\r\n".join(lines) + CLEAR_LINE + CLEAR_BELOW
        up = f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""
        self._write(f"{printed}{START_FRAME}{body}{up}\r{END_FRAME}")

    def _start(self) -> None:
        self._open = True
        self._shown = ()
        with suppress(termios.error):
            self._modes = termios.tcgetattr(self._file)
        self._disable_echo()
        alternate = ENTER_ALTERNATE if self._fullscreen else ""
        self._write(alternate + HIDE_CURSOR + (HEAR_PASTES if self._keys else ""))

    def _write(self, text: str) -> None:
        encoding = self._stream.encoding or "utf-8"
        with suppress(OSError, ValueError):  # a terminal that went away stops no run
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()

    def _disable_echo(self) -> None:
        """Keys that are typed meanwhile would be echoed into the picture."""
        if self._modes is None:
            return
        modes = [*self._modes[:CONTROLS], [*self._modes[CONTROLS]]]
        modes[LOCAL] &= ~termios.ECHO
        if self._keys:
            modes[LOCAL] &= ~termios.ICANON
            modes[CONTROLS][termios.VMIN] = modes[CONTROLS][termios.VTIME] = 0  # reading never waits
        if not self._signals:
            modes[LOCAL] &= ~termios.ISIG
        self._set_modes(modes)

    def _set_modes(self, modes: list[Any] | None) -> None:
        with suppress(termios.error):  # a terminal that went away has none
            if modes is not None:
                termios.tcsetattr(self._file, termios.TCSANOW, modes)


class TerminalCapture:
    """Collects what is printed meanwhile, which would go right through the picture."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._stand_ins: dict[str, tuple[TextIO, LineCollector]] = {}

    def catch(self) -> None:
        for name in ("stdout", "stderr"):
            stream: TextIO = getattr(sys, name)
            if stream.isatty():  # a file or a pipe disturbs no display
                stand_in = LineCollector(stream, self._lines.append)
                self._stand_ins[name] = (stream, stand_in)
                setattr(sys, name, stand_in)

    def release(self) -> None:
        for name, (stream, stand_in) in self._stand_ins.items():
            stand_in.finish()
            if getattr(sys, name) is cast(Any, stand_in):
                setattr(sys, name, stream)
        self._stand_ins.clear()

    def add(self, text: str) -> None:
        """A line that was caught elsewhere."""
        self._lines.append(text)

    def take(self) -> list[str]:
        return [self._lines.popleft() for _ in range(len(self._lines))]


class LineCollector:
    """Stands in for a stream and takes whole lines, from any thread."""

    def __init__(self, stream: TextIO, take: Callable[[str], None]) -> None:
        self._stream = stream
        self._take = take
        self._lock = threading.Lock()
        self._rest = ""

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                self._take(line)
        return len(text)

    def writelines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        pass

    def finish(self) -> None:
        with self._lock:
            if self._rest:
                self._take(self._rest)
            self._rest = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
