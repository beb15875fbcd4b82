"""How far a whole suite is: the sums over its runs.

The length of a run is known when it has read its tasks. Until then it is taken to be as long as the others
on average, so that the share that is done neither starts at 100 % nor falls back with every run that begins.
Knows nothing of terminals.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

from proctor.cli.live.progress import LONG_PACE_SECONDS, SAMPLE_SECONDS, Pace, RunProgress
from proctor.cli.views.formatting import format_quantity

STATE_ORDER = ("finished", "failed", "timed out", "stopped", "running", "stopping", "waiting")


class Totals:
    """Runs added up. Read it after `look()`."""

    def __init__(self, runs: Sequence[RunProgress], clock: Callable[[], float] = time.monotonic) -> None:
        self._runs = runs
        self._clock = clock
        self._opened_at = clock()
        self._ended_at: float | None = None
        self._pace = Pace()

    def look(self) -> None:
        now = self._clock()
        self._pace.sample(now, self.finished_here)
        if self._ended_at is None and self.all_ended:
            self._ended_at = now

    @property
    def all_ended(self) -> bool:
        return all(run.ended for run in self._runs)

    @property
    def finished(self) -> int:
        return sum(run.finished for run in self._runs)

    @property
    def finished_here(self) -> int:
        return sum(run.finished_here for run in self._runs)

    @property
    def finished_before(self) -> int:
        return sum(run.finished_before for run in self._runs)

    @property
    def failed(self) -> int:
        return sum(run.failed for run in self._runs)

    @property
    def in_flight(self) -> int:
        return sum(run.in_flight for run in self._runs)

    @property
    def input_tokens(self) -> int:
        return sum(run.input_tokens for run in self._runs)

    @property
    def output_tokens(self) -> int:
        return sum(run.output_tokens for run in self._runs)

    @property
    def planned(self) -> int | None:
        """Rollouts of all runs, in part a guess unless `is_counted`."""
        known = [run.planned for run in self._runs if run.planned is not None]
        if not known:
            return None
        return sum(known) + len(self._uncounted_runs()) * sum(known) // len(known)

    @property
    def is_counted(self) -> bool:
        return not self._uncounted_runs()

    def _uncounted_runs(self) -> list[RunProgress]:
        return [run for run in self._runs if run.planned is None and not run.ended]

    @property
    def seconds(self) -> float:
        return (self._clock() if self._ended_at is None else self._ended_at) - self._opened_at

    @property
    def per_second(self) -> float | None:
        if self._ended_at is not None:
            return self.finished_here / max(self.seconds, SAMPLE_SECONDS)
        return self._pace.per_second(self._clock(), self.finished_here)

    @property
    def seconds_left(self) -> float | None:
        planned = self.planned
        if planned is None or not self.finished_here or self.all_ended:
            return None
        never = sum((run.planned or 0) - run.finished for run in self._runs if run.ended)
        pace = self._pace.per_second(self._clock(), self.finished_here, LONG_PACE_SECONDS)
        pace = pace or self.finished_here / max(self.seconds, SAMPLE_SECONDS)
        return max(0, planned - self.finished - max(0, never)) / pace

    def states(self) -> str:
        """2 finished, 1 running."""
        counts: Counter[str] = Counter(run.state for run in self._runs)
        return ", ".join(f"{counts[state]} {state}" for state in STATE_ORDER if counts[state])

    def count(self) -> str:
        """120/360, 120/~360 where some of it is a guess, 120 where nothing is known."""
        planned = self.planned
        if planned is None:
            return f"{self.finished:,}"
        guess = "" if self.is_counted else "~"
        return f"{self.finished:>{len(f'{planned:,}')},}/{guess}{planned:,}"

    def stopping(self) -> str | None:
        """The sentence that says a stop was requested, if it was."""
        if self.all_ended or not any(run.control.stopping for run in self._runs):
            return None
        left = format_quantity(self.in_flight, "rollout")
        return f"Stopping: {left} in flight will finish; Ctrl-C again leaves at once."
