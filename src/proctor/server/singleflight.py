"""Share one lookup: callers that want the same thing at the same moment wait for one answer.

Without it, everyone would look up a cached value at once when it expires. Knows nothing of what is looked up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SingleFlight(Generic[K, T]):
    """Lookups under way, by key."""

    def __init__(self) -> None:
        self._asked: dict[K, asyncio.Task[T]] = {}

    async def ask(self, key: K, find: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(find())
            task.add_done_callback(lambda _: self._asked.pop(key, None))
        return await asyncio.shield(task)  # a caller that is cancelled does not cancel the lookup for others
