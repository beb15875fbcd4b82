"""What well-known models cost, in US dollars per million tokens.

List prices, taken down on the date below; providers change them. Knows nothing of runs.
"""

from __future__ import annotations

import msgspec

from proctor.trace import Usage

AS_OF = "2025-10-01"


class Price(msgspec.Struct, frozen=True):
    """Dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1e6


PRICES: dict[str, Price] = {
    "gpt-4.1": Price(2.0, 8.0, 0.5),
    "gpt-4.1-mini": Price(0.4, 1.6, 0.1),
    "gpt-4.1-nano": Price(0.1, 0.4, 0.025),
    "gpt-4o": Price(2.5, 10.0, 1.25),
    "gpt-4o-mini": Price(0.15, 0.6, 0.075),
    "gpt-5": Price(1.25, 10.0, 0.125),
    "gpt-5-mini": Price(0.25, 2.0, 0.025),
    "gpt-5-nano": Price(0.05, 0.4, 0.005),
    "o3": Price(2.0, 8.0, 0.5),
    "o4-mini": Price(1.1, 4.4, 0.275),
    "claude-opus-4-1": Price(15.0, 75.0, 1.5),
    "claude-sonnet-4-5": Price(3.0, 15.0, 0.3),
    "claude-haiku-4-5": Price(1.0, 5.0, 0.1),
    "gemini-2.5-pro": Price(1.25, 10.0, 0.125),
    "gemini-2.5-flash": Price(0.3, 2.5, 0.03),
    "local": Price(0.0, 0.0),
    "scripted": Price(0.0, 0.0),
}


def price_of(model: str) -> Price | None:
    """The list price, also for `provider/name` and for names that end in a date."""
    name = model.rpartition("/")[2]
    head, _, tail = name.rpartition("-")
    if tail.isdigit() and len(tail) == 8:
        name = head
    return PRICES.get(name)
