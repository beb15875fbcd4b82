"""Cache callers by token for a moment. Knows nothing of HTTP or of the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any

from proctor.server.people.tokens import Caller
from proctor.server.singleflight import SingleFlight


class CallerCache:
    """Callers by token, cached for a moment, so that a busy token is not looked up for every request."""

    def __init__(self, seconds: float = 1.0, most: int = 4096) -> None:
        self.seconds = seconds
        self.most = most
        self._known: dict[str, tuple[float, Caller]] = {}
        self._lookups = SingleFlight[str, Caller]()
        self.when_forgotten: list[Callable[[], None]] = []
        """Called when permissions have changed."""

    async def find(self, key: str, look_up: Callable[[], Coroutine[Any, Any, Caller]]) -> Caller:
        found = self._known.get(key)
        if found is not None and found[0] >= time.monotonic():
            return found[1]
        return await self._lookups.ask(key, lambda: self._look_up(key, look_up))

    async def _look_up(self, key: str, look_up: Callable[[], Coroutine[Any, Any, Caller]]) -> Caller:
        lookups = self._lookups
        caller = await look_up()
        if lookups is self._lookups:  # otherwise permissions may have changed after they were read
            if len(self._known) >= self.most:
                self._known.clear()
            self._known[key] = (time.monotonic() + self.seconds, caller)
        return caller

    def forget(self) -> None:
        """Permissions have changed."""
        self.clear()
        for notify in self.when_forgotten:
            notify()

    def clear(self) -> None:
        """Neither what is known nor what is being looked up answers a later request."""
        self._known.clear()
        self._lookups = SingleFlight()
