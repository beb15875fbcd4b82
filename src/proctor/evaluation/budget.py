"""Keep what a run costs below `--max-cost`, by starting nothing that would exceed it.

What finished rollouts cost is known, what those in flight will cost is not: they are taken to cost the mean
so far. So a run may exceed its budget by as much as its last rollouts differ from the mean, and no further.
Knows numbers, and nothing of models or files.
"""

from __future__ import annotations

from typing import Protocol

FIRST_AT_ONCE = 4
"""Rollouts in flight before the cost of any is known."""


class Spending(Protocol):
    """What a run has cost so far."""

    def spent_usd(self) -> float: ...
    def count_ended(self) -> int:
        """Rollouts that have ended, in the whole run."""

    def flush(self) -> None:
        """Count what ended a moment ago as well."""


class CostBudget:
    """Admits rollouts while their expected cost fits."""

    def __init__(self, most_usd: float, run: Spending, unit: int = 1) -> None:
        self.most_usd = most_usd
        self.is_exhausted = False
        """Nothing is in flight, and nothing more fits."""
        self._run = run
        self._unit = unit
        """Rollouts that start together."""
        self._started = run.count_ended()

    def may_start(self) -> bool:
        fits = self._fits()
        if not fits:
            self._run.flush()
            fits = self._fits()
        if fits:
            self._started += self._unit
        else:
            self.is_exhausted = self._started <= self._run.count_ended()
        return fits

    def _fits(self) -> bool:
        ended = self._run.count_ended()
        in_flight = self._started - ended
        if not ended:
            return in_flight < FIRST_AT_ONCE
        spent = self._run.spent_usd()
        return spent + (in_flight + self._unit) * spent / ended <= self.most_usd

    def describe(self) -> str:
        return (
            f"the next rollout might have cost more than --max-cost {_dollars(self.most_usd)} allows; "
            f"{_dollars(self._run.spent_usd())} were spent"
        )


def _dollars(usd: float) -> str:
    return f"${usd:,.6f}".rstrip("0").rstrip(".")
