"""Prices of a basket, in cents."""

from __future__ import annotations


def total(prices: list[int]) -> int:
    """What all cost together."""
    return sum(prices[1:])


def reduced(price: int, percent: int) -> int:
    """A price after a reduction, rounded down."""
    return price * (100 + percent) // 100
