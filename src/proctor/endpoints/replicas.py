"""Equal servers as one model: a task's requests stay with one of them, and one that is down is skipped.

So is one that asks for time: a 429 is the caller's to wait out only when every server says it. Knows
nothing of how a request is sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec

from proctor.contracts import Model, Request
from proctor.errors import (
    MalformedReplyError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    UnreachableError,
)
from proctor.support.logs import log
from proctor.task import TaskId
from proctor.trace import Reply

REMEMBERED_ROUTES = 20_000
FIRST_REST_SECONDS = 5.0
LONGEST_REST_SECONDS = 60.0
PAUSE_SECONDS = 1.0
"""After a 429 that does not say when to come back."""
STRIKES = 3
"""Failures in a row after which a server that answers at all is left alone for a while."""


class ModelReplica:
    """One of the servers, and its health."""

    def __init__(self, model: Model, address: str) -> None:
        self.model = model
        self.address = address
        self.in_flight = 0
        self.strikes = 0
        self.rests = 0
        """How often in a row it was left alone."""
        self.back_at = 0.0

    def is_available(self, now: float) -> bool:
        """Whether it may get requests; one that comes back is tried with a single request first."""
        return now >= self.back_at and (self.rests == 0 or self.in_flight == 0)

    def answered(self) -> None:
        if self.rests:
            log.info("%s answers again", self.address)
        self.strikes = self.rests = 0
        self.back_at = 0.0

    def back_off(self, error: RateLimitError, now: float) -> None:
        """Too many requests: it is healthy, and gets requests again a little later."""
        wait = min(LONGEST_REST_SECONDS, error.retry_after_seconds or PAUSE_SECONDS)
        self.back_at = max(self.back_at, now + wait)

    def record_failure(self, error: ModelError, now: float) -> None:
        self.strikes += 1
        if now < self.back_at or (self.strikes < STRIKES and not isinstance(error, UnreachableError)):
            return
        if not self.rests:
            log.warning(
                "%s is left out for a while, the other replicas take its work: %s", self.address, error
            )
        rest = min(LONGEST_REST_SECONDS, FIRST_REST_SECONDS * 2.0**self.rests)
        self.rests += 1
        self.back_at = now + rest


class ReplicatedModel:
    """A model that several equal servers answer for."""

    def __init__(
        self, models: Sequence[tuple[Model, str]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.replicas = [ModelReplica(model, address) for model, address in models]
        self._clock = clock
        self._routes: dict[TaskId, ModelReplica] = {}

    @property
    def name(self) -> str:
        return self.replicas[0].model.name

    async def check(self) -> None:
        """Servers may be down as long as one is up; a refused key is an error."""
        checks = (replica.model.check() for replica in self.replicas)
        found = await asyncio.gather(*checks, return_exceptions=True)
        for error in found:
            if error is not None and not isinstance(error, (UnreachableError, OverloadedError)):
                raise error
        errors = [error for error in found if isinstance(error, ModelError)]
        if len(errors) == len(self.replicas):
            raise errors[0]
        for replica, error in zip(self.replicas, found, strict=True):
            if isinstance(error, ModelError):
                replica.record_failure(error, self._clock())

    async def complete(self, request: Request) -> Reply:
        untried = list(self.replicas)
        while True:
            replica = self._choose(request.route, untried)
            untried.remove(replica)
            replica.in_flight += 1
            try:
                reply = await replica.model.complete(request)
            except (UnreachableError, OverloadedError) as error:
                replica.record_failure(error, self._clock())
                if not untried or request.is_begun:
                    raise
            except RateLimitError as error:
                replica.back_off(error, self._clock())
                if not any(other.is_available(self._clock()) for other in untried):
                    raise
            except (ModelTimeoutError, MalformedReplyError) as error:
                # Another server may be as slow and as expensive; a retry of the rollout goes elsewhere.
                replica.record_failure(error, self._clock())
                self._move_away(request.route, replica)
                raise
            else:
                replica.answered()
                return msgspec.structs.replace(reply, served_by=replica.address)
            finally:
                replica.in_flight -= 1

    async def close(self) -> None:
        await asyncio.gather(*(replica.model.close() for replica in self.replicas))

    def _choose(self, route: TaskId | None, untried: Sequence[ModelReplica]) -> ModelReplica:
        now = self._clock()
        known = None if route is None else self._routes.get(route)
        if known is not None and known in untried and known.is_available(now):
            return known
        fit = [replica for replica in untried if replica.is_available(now)]
        # If none is available, the one that will be first: a request that fails is better than none.
        chosen = (
            min(fit, key=lambda replica: replica.in_flight)
            if fit
            else min(untried, key=lambda replica: replica.back_at)
        )
        if route is not None:
            self._remember(route, chosen)
        return chosen

    def _move_away(self, route: TaskId | None, replica: ModelReplica) -> None:
        """The next request of this route goes to another server."""
        others = [other for other in self.replicas if other is not replica]
        if route is not None and others:
            now = self._clock()
            self._remember(
                route, min(others, key=lambda other: (not other.is_available(now), other.in_flight))
            )

    def _remember(self, route: TaskId, replica: ModelReplica) -> None:
        self._routes[route] = replica
        if len(self._routes) > REMEMBERED_ROUTES:
            del self._routes[next(iter(self._routes))]
