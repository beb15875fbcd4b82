"""Why nothing happens: a provider that asks for time, or a model that has not answered for a while.

An event only moves a few numbers; the sentence is built on request. Knows nothing of displays.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from proctor.events import (
    Event,
    ModelCalled,
    RequestDelayed,
    RolloutRetried,
    RolloutsFinished,
    RolloutStarted,
    RunStarted,
)

SILENT_SECONDS = 20.0
"""A model that has not answered for this long is reported."""
SIGNS_OF_LIFE = (ModelCalled, RolloutStarted, RolloutsFinished, RolloutRetried, RunStarted)


class WaitStatus:
    """Listens to a run, and can say what it waits for."""

    def __init__(
        self,
        model: str,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.model = model
        self.delays = 0
        """How often a request was put off."""
        self._clock = clock
        self._wall_clock = wall_clock
        self._heard_at = clock()
        self._until = 0.0
        self._reason = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, RequestDelayed):
            self.delays += 1
            self._until = max(self._until, self._clock() + event.seconds)
            self._reason = event.failure.message
        elif isinstance(event, SIGNS_OF_LIFE):
            self._heard_at = self._clock()

    def describe(self, requests: int | None) -> str | None:
        """What the run waits for, given the requests in flight (None: unknown); None if it makes progress."""
        now = self._clock()
        if now < self._until:
            return self._describe_delay(self._until - now)
        silent = now - self._heard_at
        if requests and silent >= SILENT_SECONDS:
            waiting = "1 request waits" if requests == 1 else f"{requests:,} requests wait"
            return (
                f"Waiting for {self.model}: no answer for {silent:.0f} s, {waiting}. "
                "A server may be loading or fetching the model."
            )
        return None

    def _describe_delay(self, seconds: float) -> str:
        until = time.strftime("%H:%M:%S", time.localtime(self._wall_clock() + seconds))
        times = "once" if self.delays == 1 else f"{self.delays:,} times"
        return f"Waiting for {self.model} until {until}; requests were put off {times}: {self._reason}"
