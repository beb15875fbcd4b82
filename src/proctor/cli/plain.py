"""The display without cursor games: a tqdm bar on a terminal, a few plain lines anywhere else.

Lines in a log file are read later, so they carry the time and come rarely. Knows nothing of Rich.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from proctor.cli.progress import (
    LogTap,
    Progress,
    Settings,
    clock_text,
    interval_text,
    short_count,
    short_number,
    short_rate,
    title,
)
from proctor.cli.text import one_line
from proctor.evaluation import Control
from proctor.events import Event, LogLine

if TYPE_CHECKING:
    from tqdm import tqdm

log = logging.getLogger("proctor")

LOOK_SECONDS = 0.25
QUIET_SECONDS = 10.0
"""At least this long between two lines of progress."""
STEP = 0.1
"""Share of the run worth a line."""
SIGN_OF_LIFE_SECONDS = 60.0
"""After this long without a line, any progress or none is worth one."""


class PlainDisplay:
    """Tells how a run goes on, in lines."""

    def __init__(
        self,
        stream: TextIO,
        settings: Settings,
        control: Control,
        *,
        bar: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.progress = Progress(control, clock)
        self._stream = stream
        self._env, self._model, self._settings = title(settings)
        self._wants_bar = bar
        self._bar: tqdm[None] | None = None
        self._clock = clock
        self._said_at = clock()
        self._said_finished = 0
        self._said_stopping = False
        self._tap = LogTap(self._take_log)
        self._task: asyncio.Task[None] | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, LogLine):
            self._take_log(event)
        else:
            self.progress(event)

    async def __aenter__(self) -> PlainDisplay:
        log.addHandler(self._tap)
        self._say(self._opening())
        self._task = asyncio.create_task(self._keep_looking())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
        self.close()

    def close(self) -> None:
        """Say the last words; safe to call twice."""
        log.removeHandler(self._tap)
        if self.progress.run is None:
            return  # it never began, and whoever knows why will say so
        self.progress.look_at_last()
        if self._wants_bar:
            self._move_bar()
            self._close_bar()
        else:
            self._say(self._closing())
        self.progress.run = None

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Say what is worth saying now."""
        progress = self.progress
        progress.look()
        if progress.run is None:
            return
        stopping = progress.stopping()
        if stopping and not self._said_stopping:
            self._said_stopping = True
            self._say(stopping)
        if self._wants_bar:
            self._move_bar()
        elif self._is_worth_a_line():
            self._said_at = self._clock()
            self._said_finished = progress.finished
            self._say(self._so_far())

    def _is_worth_a_line(self) -> bool:
        quiet, progress = self._clock() - self._said_at, self.progress
        if quiet >= SIGN_OF_LIFE_SECONDS:
            return True
        if quiet < QUIET_SECONDS or progress.planned is None:
            return False
        return progress.finished - self._said_finished >= progress.planned * STEP

    def _share(self) -> float:
        planned = self.progress.planned
        return self.progress.finished / planned if planned else 0.0

    # The words

    def _opening(self) -> str:
        settings = ", ".join(f"{label} {value}" for label, value in self._settings)
        return f"Evaluating {self._env} with {self._model}" + (f": {settings}" if settings else "")

    def _so_far(self) -> str:
        progress = self.progress
        parts = [f"{self._count()}, {short_rate(progress.per_second)}"]
        left = progress.seconds_left
        if left is not None and not progress.control.stopping:
            parts.append(f"{clock_text(left)} left")
        return "; ".join([", ".join(parts), *self._results()])

    def _closing(self) -> str:
        run = self.progress.run
        status = "Ended" if run is None or not self.progress.ended else run.status.capitalize()
        after = f"{status} after {clock_text(self.progress.seconds)}: {self._count()}"
        return "; ".join([after, *self._results()])

    def _count(self) -> str:
        progress = self.progress
        if progress.planned is None:
            return f"{progress.finished:,} rollouts"
        return f"{progress.finished:,}/{progress.planned:,} rollouts ({self._share():.0%})"

    def _results(self) -> list[str]:
        progress = self.progress
        tokens = f"tokens {short_count(progress.input_tokens)} in, {short_count(progress.output_tokens)} out"
        outcomes = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in progress.outcomes())
        return [self._score(), outcomes, tokens]

    def _score(self) -> str:
        score = self.progress.score
        if score.mean is None:
            return "no score yet"
        interval = interval_text(score)
        return f"score {short_number(score.mean)}" + (f", {interval}" if interval else "")

    # Where they go

    def _take_log(self, line: LogLine) -> None:
        self._say(f"{one_line(line.level)} {one_line(line.text)}")

    def _say(self, text: str) -> None:
        with suppress(OSError, ValueError):  # a reader that went away stops no run
            if self._bar is not None:
                self._bar.write(self._encodable(text), file=self._stream)
                return
            stamp = "" if self._wants_bar else time.strftime("%H:%M:%S ")
            self._stream.write(self._encodable(f"{stamp}{text}\n"))
            self._stream.flush()

    def _encodable(self, text: str) -> str:
        encoding = self._stream.encoding or "utf-8"
        return text.encode(encoding, "replace").decode(encoding)

    def _move_bar(self) -> None:
        progress = self.progress
        with suppress(OSError, ValueError):
            if self._bar is None:
                self._bar = self._new_bar()
            bar = self._bar
            bar.total = progress.planned
            tokens = f"tokens {short_count(progress.input_tokens)}/{short_count(progress.output_tokens)}"
            score = "" if progress.score.mean is None else f"score {short_number(progress.score.mean)}"
            parts = [part for part in (score, f"errors {progress.failed:,}", tokens) if part]
            bar.set_postfix_str(", ".join(parts), refresh=False)
            bar.update(progress.finished - bar.n)
            bar.refresh()

    def _new_bar(self) -> tqdm[None]:
        from tqdm import tqdm

        class Bar(tqdm):  # type: ignore[type-arg]
            monitor_interval = 0  # its monitor is a thread that would draw behind our back

        bar = Bar(
            total=self.progress.planned,
            initial=self.progress.finished_before,
            desc=self._env,
            unit="",
            file=self._stream,
            dynamic_ncols=True,
            mininterval=LOOK_SECONDS,
            smoothing=0,
        )
        bar.start_t -= self.progress.seconds  # it is made a moment after the run began
        return bar

    def _close_bar(self) -> None:
        with suppress(OSError, ValueError):
            if self._bar is not None:
                self._bar.close()
        self._bar = None
