"""Ask once for many: whoever wants to know the same at the same moment waits for one answer.

Without it, a thing that is remembered for a moment is looked up by everybody at once when the moment is over.
Knows nothing of what is looked up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SingleFlight(Generic[K, T]):
    """Questions under way, by what they are about."""

    def __init__(self) -> None:
        self._asked: dict[K, asyncio.Task[T]] = {}

    async def ask(self, key: K, find: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(find())
            task.add_done_callback(lambda _: self._asked.pop(key, None))
        return await asyncio.shield(task)  # one who leaves takes nobody's answer along
