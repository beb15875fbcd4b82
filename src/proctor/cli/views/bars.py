"""Small pictures made of characters: interval bars and levels. Knows numbers, and nothing of runs."""

from __future__ import annotations

from collections.abc import Sequence

LEVELS = "▁▂▃▄▅▆▇█"
NARROWEST_BAR = 12
WIDEST_BAR = 48


class BarScale:
    """A range of values, drawn over so many characters."""

    def __init__(self, low: float, high: float, width: int) -> None:
        self.low, self.high = (low, high) if high > low else (low - 0.5, low + 0.5)
        self.width = width

    def column(self, value: float) -> int:
        share = (value - self.low) / (self.high - self.low)
        return min(self.width - 1, max(0, round(share * (self.width - 1))))

    def interval(self, low: float | None, middle: float, high: float | None, zero: bool = False) -> str:
        """An interval with its estimate, and where 0 lies if asked for."""
        cells = [" "] * self.width
        if zero and self.low <= 0 <= self.high:
            cells[self.column(0)] = "│"
        if low is not None and high is not None:
            start, end = self.column(low), self.column(high)
            cells[start : end + 1] = ["─"] * (end - start + 1)
            if zero and start <= self.column(0) <= end:
                cells[self.column(0)] = "│"
            cells[start], cells[end] = "├", "┤"
        cells[self.column(middle)] = "●"
        return "".join(cells).rstrip()


def draw_levels(values: Sequence[float], top: float | None = None) -> str:
    """One character per value, as tall as it is; 0 is a blank."""
    most = max(values, default=0) if top is None else top
    if most <= 0:
        return " " * len(values)
    steps = len(LEVELS)
    return "".join(
        " " if value <= 0 else LEVELS[min(steps - 1, int(value / most * steps))] for value in values
    )
