"""Running a coroutine by a clock on which a busy machine loses no time.

A process that waits so long for its turn, or for the collector, misses a limit of a tenth of a second.
Here only waiting counts, and never for longer than was asked for; what a step takes by itself hardly does.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

MOST_SECONDS_A_STEP = 0.001
"""Not zero, or a loop that never waits would have no end."""
T = TypeVar("T")


class SteadyLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._selecting = TimedSelector()
        super().__init__(self._selecting)

    def time(self) -> float:
        return self._selecting.now


class TimedSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self._looked_at = self.now = time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.monotonic()
        found = super().select(timeout)
        ended = time.monotonic()
        waited = ended - began if timeout is None else min(ended - began, max(timeout, 0.0))
        self.now += min(began - self._looked_at, MOST_SECONDS_A_STEP) + waited
        self._looked_at = ended
        return found


def run_steadily(main: Coroutine[Any, Any, T]) -> T:
    """asyncio.run() by that clock."""
    with asyncio.Runner(loop_factory=SteadyLoop) as runner:
        return runner.run(main)
