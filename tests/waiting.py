"""Waiting for what happens elsewhere, long enough for a busy machine: only a failure takes that time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 120.0
T = TypeVar("T")


def wait_for(
    condition: Callable[[], T | None], seconds: float = SECONDS, what: str = "what was waited for"
) -> T:
    """The first true value of a condition; a test that waits in vain fails."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(0.03)
    return value
