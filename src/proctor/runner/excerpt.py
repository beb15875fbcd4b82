"""The beginning and the end of what somebody prints who may never stop: never more than a host can hold.

Knows nothing of who prints.
"""

from __future__ import annotations

from collections import deque

FIRST_LINES = 200
LAST_LINES = 2_000


class Excerpt:
    """Takes lines; keeps the first and the last, and counts those between."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self.left_out = 0

    def add(self, line: str) -> None:
        if len(self._first) < FIRST_LINES:
            self._first.append(line)
            return
        self.left_out += len(self._last) == LAST_LINES
        self._last.append(line)

    @property
    def lines(self) -> list[str]:
        """With a line that says how many are missing, where any are."""
        gap = [f"… {self.left_out:,} lines were left out"] if self.left_out else []
        return [*self._first, *gap, *self._last]

    def take(self) -> list[str]:
        """What was kept, and begin anew."""
        lines = self.lines
        self._first, self.left_out = [], 0
        self._last.clear()
        return lines
