"""How long a rollout has been waiting for a model.

Distinguishes a rollout that was too slow from one whose model left it without an answer until its time was
up. Knows nothing of clocks, requests or traces.
"""

from __future__ import annotations

from proctor.errors import ContextTooLongError, ModelError, ModelTimeoutError, RequestRefusedError

LARGE_PART = 0.5
"""Of a rollout's time: a model that answered before, and then not for this part of it, has failed."""


class ModelWait:
    """The requests of one rollout since the last answer."""

    __slots__ = ("_earlier", "_failure", "_has_answered", "_pending", "_since")

    def __init__(self) -> None:
        self._pending = 0
        self._since = 0.0
        """When the present wait began, while there is one."""
        self._earlier = 0.0
        """Seconds of waits that ended without an answer because the caller gave up."""
        self._failure: ModelError | None = None
        """The provider's last failure; until it answers, the rollout is waiting for it."""
        self._has_answered = False

    @property
    def _is_waiting(self) -> bool:
        return self._pending > 0 or self._failure is not None

    def begin(self, now: float) -> None:
        if not self._is_waiting:
            self._since = now
        self._pending += 1

    def end_answered(self, now: float) -> None:
        self._pending -= 1
        self._has_answered = True
        self._forget(now)

    def end_failed(self, error: ModelError, now: float) -> None:
        """A request that the provider refuses has been answered; any other failure is the provider's."""
        self._pending -= 1
        if isinstance(error, (RequestRefusedError, ContextTooLongError)):
            self._forget(now)
        else:
            self._failure = error

    def note_failure(self, error: ModelError) -> None:
        """A request failed and is sent again."""
        self._failure = error

    def end_cancelled(self, now: float) -> None:
        """The caller gave up waiting."""
        self._pending -= 1
        if not self._is_waiting:
            self._earlier += now - self._since

    def blame(self, now: float, limit_seconds: float, model: str) -> ModelTimeoutError | None:
        """The model's failure, if it is why the time is up: it never answered this rollout, or not during a
        large part of its time."""
        waited = self._earlier + (now - self._since if self._is_waiting else 0.0)
        is_silent = self._is_waiting and not self._has_answered
        if not is_silent and waited < limit_seconds * LARGE_PART:
            return None
        last = "" if self._failure is None else f" (last error: {self._failure})"
        error = ModelTimeoutError(
            f"{model} had not answered for {waited:.3g} s when the {limit_seconds:g} s to play were up{last};"
            " if it is only slow, give it more time with --timeout"
        )
        error.__cause__ = self._failure
        return error

    def _forget(self, now: float) -> None:
        self._earlier = 0.0
        self._failure = None
        self._since = now
