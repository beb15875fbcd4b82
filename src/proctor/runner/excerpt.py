"""Keep the beginning and the end of output that may never end, so that it always fits into a host's memory.

Knows nothing of where the output comes from.
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
        """Includes a line with the number of omitted lines, if there are any."""
        gap = [f"… {self.left_out:,} lines omitted"] if self.left_out else []
        return [*self._first, *gap, *self._last]

    def take(self) -> list[str]:
        """Return the lines and start over."""
        lines = self.lines
        self._first, self.left_out = [], 0
        self._last.clear()
        return lines
