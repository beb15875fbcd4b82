"""Cache callers by token for a moment. Knows nothing of HTTP or of the database."""

from __future__ import annotations

import time
from collections.abc import Callable

from proctor.server.people.tokens import Caller
from proctor.server.singleflight import SingleFlight


class CallerCache:
    """Callers by token, cached for a moment, so that a busy token is not looked up for every request."""

    def __init__(self, seconds: float = 1.0, most: int = 4096) -> None:
        self.seconds = seconds
        self.most = most
        self._known: dict[str, tuple[float, Caller]] = {}
        self.asked = SingleFlight[str, Caller]()
        self.when_forgotten: list[Callable[[], None]] = []
        """Called when permissions have changed."""

    def get(self, word: str) -> Caller | None:
        found = self._known.get(word)
        if found is None or found[0] < time.monotonic():
            return None
        return found[1]

    def put(self, word: str, caller: Caller) -> None:
        if len(self._known) >= self.most:
            self._known.clear()
        self._known[word] = (time.monotonic() + self.seconds, caller)

    def forget(self) -> None:
        """Permissions have changed."""
        self._known.clear()
        for tell in self.when_forgotten:
            tell()
