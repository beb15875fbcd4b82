"""The live display of running evaluations: calm, aligned, and gone when they are over.

One run has the screen to itself; several share it, with an overview above and one of them in detail below.
Drawn a few times a second by a task of the same event loop; between frames an event only moves counters.
Everything from outside is shown as plain text: neither markup nor escape codes in it have any effect.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from proctor.cli.live.detail import LEVEL_STYLES, detail_lines
from proctor.cli.live.display_choice import Display
from proctor.cli.live.keys import Keyboard, is_same_terminal
from proctor.cli.live.logs import KEPT_LINES, LogBuffer
from proctor.cli.live.overview import count_visible_rows, overview_lines, scroll_to_selected
from proctor.cli.live.progress import DisplayedRun
from proctor.cli.live.screen import Screen, TerminalCapture
from proctor.cli.views.escape import LONGEST_LINE, one_line
from proctor.cli.views.lines import DIM, LinePainter, StyledLine, styled_line
from proctor.events import LogLine

KEPT_WARNINGS = 10
PAGE = 10
UNCUT = 1_000_000
KEY_HELP = "←/→ run   Home/End first/last   ↑/↓ log   q stop, as Ctrl-C   ? close this"
KEY_HELP_FOR_ONE = "↑/↓ log   q stop, as Ctrl-C   ? close this"
AT_THE_END = "All is done. q, Enter or Ctrl-C leaves."
SCROLLS = {"up": 1, "down": -1, "page up": PAGE, "page down": -PAGE}


class LiveDisplay(Display):
    """Shows runs while they are played."""

    def __init__(self, stream: TextIO, runs: Sequence[DisplayedRun], *, fullscreen: bool = False) -> None:
        super().__init__(runs)
        wants_keys = fullscreen or not self.alone
        has_keys = wants_keys and is_same_terminal(sys.stdin, stream)
        self._stream = stream
        self._fullscreen = fullscreen
        self._ink = LinePainter(stream)
        self._screen = Screen(stream, fullscreen, has_keys)
        self._keyboard = Keyboard(sys.stdin, self.press) if has_keys else None
        self._printed = TerminalCapture()
        self._held: deque[str] = deque(maxlen=KEPT_LINES)
        self._logs = [LogBuffer() for _ in runs]
        self._warnings: Counter[tuple[str, str]] = Counter()
        self._selected = 0
        self._first = 0
        """The first run with a line in the overview."""
        self._follows = True
        """The user has not chosen a run, so one in progress is shown."""
        self._helps = False
        self._left: asyncio.Event | None = None
        """Set when the user has seen the end; present only while waiting for that."""

    # Opening and closing

    def begin(self) -> None:
        self._printed.catch()
        atexit.register(self.close)
        loop = asyncio.get_running_loop()
        with suppress(ValueError, RuntimeError):  # only the main thread receives signals
            loop.add_signal_handler(signal.SIGCONT, self._screen.wake)
            if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:  # ignored if no shell could continue us
                loop.add_signal_handler(signal.SIGTSTP, self._suspend)

    async def linger(self) -> None:
        """A screen of its own would vanish with everything on it: wait until the user has seen it."""
        if not self._fullscreen or self._keyboard is None or not self._screen.is_ours():
            return
        self._left = left = asyncio.Event()
        self._screen.take_signals()
        while not left.is_set() and not self._is_stopped() and self._stream.isatty():
            self.show()
            with suppress(TimeoutError):
                await asyncio.wait_for(left.wait(), self.look_seconds)

    def _is_stopped(self) -> bool:
        return any(run.control.stopping for run in self.runs)

    def finish(self) -> None:
        """Give the terminal back at once, then say what must not be lost with the picture."""
        atexit.unregister(self.close)
        self._release()
        with suppress(RuntimeError):  # without a loop, signals are no longer handled
            loop = asyncio.get_running_loop()
            loop.remove_signal_handler(signal.SIGTSTP)
            loop.remove_signal_handler(signal.SIGCONT)
        self._printed.release()
        for text in (*self._held, *self._printed.take()):
            self._leave(styled_line(one_line(text)))
        for (level, text), times in self._warnings.items():
            again = f" ({times}×)" if times > 1 else ""
            self._leave(styled_line((level, LEVEL_STYLES[level]), f" {one_line(text)}{again}"))
        self._held.clear()
        self._warnings.clear()

    def _release(self) -> None:
        if self._keyboard is not None:
            self._keyboard.close()
        self._screen.close()

    def _suspend(self) -> None:
        """Ctrl-Z: leave a clean terminal to the shell, and come back with the job."""
        self._release()
        os.kill(os.getpid(), signal.SIGSTOP)

    def _leave(self, left: StyledLine) -> None:
        with suppress(OSError, ValueError):  # a terminal that went away spoils no result
            text, encoding = self._ink.paint(left, UNCUT), self._stream.encoding or "utf-8"
            self._stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
            self._stream.flush()

    @property
    def collects_output(self) -> bool:
        return not self._closed

    def take_output(self, text: str) -> None:
        self._printed.add(text)

    # What is typed

    def press(self, key: str) -> None:
        """Do what a key stands for, and show it at once."""
        if key in ("quit", "enter", "interrupt") and self._left is not None:
            self._left.set()
        elif key in ("quit", "interrupt"):
            os.kill(os.getpid(), signal.SIGINT)
        elif key == "suspend":
            os.kill(os.getpid(), signal.SIGTSTP)
        elif key == "help":
            self._helps = not self._helps
        elif key in SCROLLS:
            self._logs[self._selected].scroll(SCROLLS[key])
        else:
            self._select(key)
        self.show()

    def _select(self, key: str) -> None:
        last = len(self.runs) - 1
        targets = {"left": self._selected - 1, "right": self._selected + 1, "home": 0, "end": last}
        if key in targets:
            self._selected = max(0, min(last, targets[key]))
            self._follows = False

    # What is shown

    def take_log(self, line: LogLine, index: int | None) -> None:
        for kept in self._logs if index is None else [self._logs[index]]:
            kept.take(line)
        if line.level in LEVEL_STYLES:
            whose = "" if index is None or self.alone else f"[{self.runs[index].name}] "
            warning = (line.level, whose + line.text[:LONGEST_LINE])
            if warning in self._warnings or len(self._warnings) < KEPT_WARNINGS:
                self._warnings[warning] += 1

    def show(self) -> None:
        if not self._screen.ready():
            return
        above = self._printed.take()
        if self._fullscreen:
            self._held.extend(above)
            for text in above:
                self.take_log(LogLine("", text, time.time()), None)
            above = []
        columns, height = self._screen.size()
        lines = self._lines(columns, height if self._fullscreen else height - 1)
        self._screen.draw(
            [self._ink.paint(drawn, columns) for drawn in lines], [one_line(text) for text in above]
        )
        if self._keyboard is not None:
            self._keyboard.open()

    def _lines(self, width: int, height: int) -> list[StyledLine]:
        footer = self._footer()[: max(0, height - 1)]
        height -= len(footer)
        above = [] if self.alone else self._overview(width, height // 2)
        run, kept = self.runs[self._selected], self._logs[self._selected]
        room = height - len(above)
        below = detail_lines(run, kept, width, room, alone=self.alone, fills=self._fullscreen)
        if footer and self._fullscreen:
            below += [StyledLine()] * (room - len(below))
        return [*above, *below, *footer]

    def _overview(self, width: int, height: int) -> list[StyledLine]:
        self._follow()
        rows = count_visible_rows(height, len(self.runs))
        self._first = scroll_to_selected(self._first, self._selected, rows, len(self.runs))
        return overview_lines(self.runs, self.totals, self._selected, self._first, width, height)

    def _follow(self) -> None:
        """Unless the user has chosen one, switch from a run that has ended to one in progress."""
        if not self._follows or not self.runs[self._selected].ended:
            return
        going_on = (index for index, run in enumerate(self.runs) if run.run is not None and not run.ended)
        self._selected = next(going_on, self._selected)

    def _footer(self) -> list[StyledLine]:
        if self._helps:
            return [styled_line((KEY_HELP_FOR_ONE if self.alone else KEY_HELP, DIM))]
        return [] if self._left is None else [styled_line((AT_THE_END, DIM))]
