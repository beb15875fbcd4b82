"""Run several things one after the other, except neighbors that may overlap.

Knows nothing of what they do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def run_in_order(
    items: Sequence[T], run: Callable[[T], Awaitable[R]], may_overlap: Callable[[T], bool]
) -> list[R]:
    """The results, in the order of the items. Raises the first failure, and then runs nothing further."""
    results: list[R] = []
    for overlap, stretch in groupby(items, key=may_overlap):
        if overlap:
            results += await run_together(list(stretch), run)
        else:
            for item in stretch:
                results.append(await run(item))
    return results


async def run_together(items: Sequence[T], run: Callable[[T], Awaitable[R]]) -> list[R]:
    """Waits for all, also for the siblings of one that fails: what they use must not be removed."""
    ended = await asyncio.gather(*(run(item) for item in items), return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in ended if not isinstance(outcome, BaseException)]
