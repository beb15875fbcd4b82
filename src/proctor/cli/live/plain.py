"""The display without cursor movement: a tqdm bar on a terminal, a few plain lines anywhere else.

Lines in a log file are read later, so they carry the time and come rarely; where there are several runs,
a line names its own. Knows nothing of Rich.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from proctor.cli.live import narration as telling
from proctor.cli.live.display_choice import Display
from proctor.cli.live.progress import DisplayedRun, RunProgress
from proctor.cli.views.escape import one_line
from proctor.cli.views.formatting import format_short_count, format_short_number
from proctor.events import LogLine

if TYPE_CHECKING:
    from tqdm import tqdm

QUIET_SECONDS = 10.0
"""At least this long between two lines of progress."""
STEP = 0.1
"""Share of a run worth a line."""
WAIT_SECONDS = 15.0
"""At least this long between two lines about what a run waits for."""
SIGN_OF_LIFE_SECONDS = 60.0
"""After this long without a line, any progress or none is worth one."""


class PlainDisplay(Display):
    """Reports the progress of runs in lines."""

    look_seconds = 0.25

    def __init__(
        self,
        stream: TextIO,
        runs: Sequence[DisplayedRun],
        *,
        bar: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(runs, clock)
        self._stream = stream
        self._wants_bar = bar
        self._bar: tqdm[None] | None = None
        self._printed_at = clock()
        self._printed_finished = dict.fromkeys(self.runs, 0)
        self._printed_start: set[RunProgress] = set()
        self._printed_end: set[RunProgress] = set()
        self._printed_stopping = False
        self._printed_wait: dict[RunProgress, float] = {}

    @property
    def _begun(self) -> list[RunProgress]:
        return [run for run in self.runs if run.run is not None]

    def begin(self) -> None:
        self._print(
            telling.describe_opening(self.runs[0]) if self.alone else f"Evaluating {len(self.runs)} runs"
        )

    def show(self) -> None:
        """Say what is worth saying now."""
        if not self._begun:
            return
        if not self.alone:
            self._print_starts()
            self._print_ends([run for run in self._begun if run.ended])
        stopping = self.totals.stopping()
        if stopping and not self._printed_stopping:
            self._printed_stopping = True
            self._print(stopping)
        self._print_waits()
        if self._wants_bar:
            self._move_bar()
        else:
            self._print_progress()

    def finish(self) -> None:
        if not self._begun:
            return  # the error is reported elsewhere
        for run in self.runs:
            run.refresh_fully()
        self.totals.look()
        if self._wants_bar:
            self._move_bar()
            self._close_bar()
        if not self.alone:
            self._print_starts()
            self._print_ends(self._begun)
            self._print(telling.describe_suite_end(self.totals))
        elif not self._wants_bar:  # which stays, and says as much
            self._print(telling.describe_end(self.runs[0]))

    # When a line is printed

    def _print_starts(self) -> None:
        for run in self._begun:
            if run not in self._printed_start and not run.ended:
                self._printed_start.add(run)
                self._printed_at = self._clock()
                self._print_for(run, telling.describe_start(run))

    def _print_ends(self, ended: Sequence[RunProgress]) -> None:
        for run in ended:
            if run not in self._printed_end:
                self._printed_end.add(run)
                self._printed_at = self._clock()
                run.refresh_fully()
                self._print_for(run, telling.describe_end_with_reason(run))

    def _print_waits(self) -> None:
        """Say what a run waits for: at once, and then rarely for as long as it waits."""
        for run in self._begun:
            waiting = run.waiting()
            printed_at = self._printed_wait.get(run)
            if waiting and (printed_at is None or self._clock() - printed_at >= WAIT_SECONDS):
                self._printed_wait[run] = self._clock()
                self._print_for(run, waiting)

    def _print_progress(self) -> None:
        quiet = self._clock() - self._printed_at
        newest = max(self._begun, key=self._share_since_last)
        if quiet >= SIGN_OF_LIFE_SECONDS and not self.alone:
            self._printed_at = self._clock()
            self._print(telling.describe_suite_progress(self.totals))
        elif quiet >= SIGN_OF_LIFE_SECONDS or (
            quiet >= QUIET_SECONDS and self._share_since_last(newest) >= STEP
        ):
            self._printed_at = self._clock()
            self._printed_finished[newest] = newest.finished
            self._print_for(newest, telling.describe_progress(newest))

    def _share_since_last(self, run: RunProgress) -> float:
        """The share of a run that was done since its last line; its end has a line anyway."""
        if not run.planned or run in self._printed_end:
            return 0.0
        return (run.finished - self._printed_finished[run]) / run.planned

    # Where it goes

    def take_log(self, line: LogLine, index: int | None) -> None:
        text = f"{one_line(line.level)} {one_line(line.text)}"
        if index is None:
            self._print(text)
        else:
            self._print_for(self.runs[index], text)

    def _print_for(self, run: RunProgress, text: str) -> None:
        self._print(text if self.alone else f"[{run.name}] {text}")

    def _print(self, text: str) -> None:
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

    # The bar

    def _move_bar(self) -> None:
        totals = self.totals
        with suppress(OSError, ValueError):
            if self._bar is None:
                self._bar = self._new_bar()
            bar = self._bar
            bar.total = totals.planned
            bar.initial = totals.finished_before
            bar.set_postfix_str(", ".join(self._bar_words()), refresh=False)
            bar.update(totals.finished - bar.n)
            bar.refresh()

    def _bar_words(self) -> list[str]:
        totals = self.totals
        tokens = (
            f"tokens {format_short_count(totals.input_tokens)}/{format_short_count(totals.output_tokens)}"
        )
        words = [f"errors {totals.failed:,}", tokens]
        score = self.runs[0].score.mean if self.alone else None  # several have no score in common
        return words if score is None else [f"score {format_short_number(score)}", *words]

    def _new_bar(self) -> tqdm[None]:
        from tqdm import tqdm

        class Bar(tqdm):  # type: ignore[type-arg]
            monitor_interval = 0  # its monitor is a thread that would draw behind our back

        bar = Bar(
            total=self.totals.planned,
            initial=self.totals.finished_before,
            desc=self.runs[0].env if self.alone else f"{len(self.runs)} runs",
            unit="",
            file=self._stream,
            dynamic_ncols=True,
            mininterval=self.look_seconds,
            smoothing=0,
        )
        bar.start_t -= self.runs[0].seconds if self.alone else self.totals.seconds
        return bar

    def _close_bar(self) -> None:
        with suppress(OSError, ValueError):
            if self._bar is not None:
                self._bar.close()
        self._bar = None
