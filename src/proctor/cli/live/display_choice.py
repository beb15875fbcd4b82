"""What all displays do alike, and which one suits: live on a terminal, plain lines elsewhere.

A display listens to the runs, looks at them again and again in a task of the same event loop, so that nothing
is read across threads, and says the last words when it is closed. Rich and tqdm are loaded only to be used.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from proctor.cli.live.logs import LogTap
from proctor.cli.live.progress import DisplayedRun, RunProgress
from proctor.cli.live.totals import Totals
from proctor.contracts import Listener
from proctor.events import Event, LogLine
from proctor.support.logs import log

if TYPE_CHECKING:
    from proctor.cli.live.display import LiveDisplay
    from proctor.cli.live.plain import PlainDisplay

SCORE_BUDGET_SECONDS = 0.002
"""One look works out scores for about so long; the other runs have theirs at the next."""


def choose_display(
    runs: Sequence[DisplayedRun],
    *,
    disabled: bool = False,
    fullscreen: bool = False,
    stream: TextIO | None = None,
) -> LiveDisplay | PlainDisplay:
    """The display that suits `stream`, which is stderr unless told otherwise."""
    stream = stream or sys.stderr
    can_draw = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if disabled or not can_draw:
        from proctor.cli.live.plain import PlainDisplay

        return PlainDisplay(stream, runs, bar=can_draw)

    from proctor.cli.live.display import LiveDisplay

    return LiveDisplay(stream, runs, fullscreen=fullscreen)


class DisplayListener:
    """Passes the events of one run to its display."""

    wants_traces = False

    def __init__(self, display: Display, index: int) -> None:
        self._display = display
        self._index = index
        self._progress = display.runs[index]

    def __call__(self, event: Event) -> None:
        if isinstance(event, LogLine):
            self._display.take_log(event, self._index)
        else:
            self._progress(event)


class Display:
    """Watches runs while they are played; its subclasses decide how that looks."""

    look_seconds = 0.2

    def __init__(self, runs: Sequence[DisplayedRun], clock: Callable[[], float] = time.monotonic) -> None:
        self.runs = [RunProgress(shown, clock, among=len(runs)) for shown in runs]
        self.totals = Totals(self.runs, clock)
        self.alone = len(runs) == 1
        self._closed = False
        self._clock = clock
        self._tap = LogTap(self._take_record)
        self._task: asyncio.Task[None] | None = None

    def listener(self, index: int) -> Listener:
        """Receives the events of run number `place`."""
        return DisplayListener(self, index)

    async def __aenter__(self) -> Self:
        logging.getLogger().addHandler(self._tap)
        self.begin()
        self._task = asyncio.create_task(self._keep_looking())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.linger()
        finally:
            if self._task is not None:
                self._task.cancel()
            self.close()

    def close(self) -> None:
        """Say the last words; safe to call at any time, and twice."""
        logging.getLogger().removeHandler(self._tap)
        if not self._closed:
            self._closed = True
            self.finish()

    async def _keep_looking(self) -> None:
        while not self._closed:
            try:
                self.look()
            except Exception:
                self.close()
                log.exception("the display failed; the run continues without it")
                return
            await asyncio.sleep(self.look_seconds)

    def look(self) -> None:
        """Bring the numbers up to date, and show them."""
        enough = self._clock() + SCORE_BUDGET_SECONDS
        for progress in sorted(self.runs, key=lambda progress: progress.score_due):
            progress.look(with_score=self._clock() <= enough)
        self.totals.look()
        self.show()

    def _take_record(self, line: LogLine, index: int | None) -> None:
        known = index is not None and 0 <= index < len(self.runs)
        self.take_log(line, index if known else None)

    @property
    def collects_output(self) -> bool:
        """Whether it shows what is printed itself; otherwise that goes straight to the terminal."""
        return False

    def take_output(self, text: str) -> None:
        """Show a printed line; called from any thread."""

    # What a kind of display adds

    def begin(self) -> None:
        """Say the first words."""

    async def linger(self) -> None:
        """Stay until the user has seen the end."""

    def finish(self) -> None:
        """Say the last words, once."""

    def show(self) -> None:
        """Show how things are."""

    def take_log(self, line: LogLine, index: int | None) -> None:
        """Show a log line of one run, or of none."""
