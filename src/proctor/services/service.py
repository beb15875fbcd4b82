"""Service: an endpoint opened once for all evaluations that ask it, with one pace and one budget.

Knows nothing of environments or runs.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from proctor import plugins
from proctor.config.endpoints import Endpoint
from proctor.contracts import Model
from proctor.engine.limits import Gate, Throttle
from proctor.services.meter import Metered
from proctor.services.replicas import Replicas

Place = tuple[str, str]
"""What has one capacity: a model at an address."""


def open_model(endpoint: Endpoint) -> Model:
    """The model behind an endpoint: metered and replicated as its registry entry says."""
    if endpoint.replicas:
        return Replicas([(open_one(replica), replica.url) for replica in endpoint.replicas])
    return open_one(endpoint)


def open_one(endpoint: Endpoint) -> Model:
    model: Model = plugins.load(plugins.MODELS, endpoint.client_type).at(endpoint)
    if endpoint.requests_per_minute or endpoint.tokens_per_minute:
        return Metered(model, endpoint.requests_per_minute, endpoint.tokens_per_minute)
    return model


class Service:
    """What evaluations of one endpoint share."""

    def __init__(self, model: Model, budget: Gate | None = None, pace: Throttle | None = None) -> None:
        self.model = model
        self.budget = budget
        """Rollouts that may be played at once, of all evaluations together; None where one has it alone."""
        self.pace = pace or Throttle()
        self._checked: asyncio.Future[None] | None = None

    async def check(self) -> None:
        """Ask the model once whether it can be asked, however many want to know."""
        if self._checked is None:
            self._checked = asyncio.ensure_future(self.model.check())
        await asyncio.shield(self._checked)

    async def close(self) -> None:
        await self.model.close()


class Services:
    """All endpoints of a suite, each opened once."""

    def __init__(self, wanted: Iterable[tuple[Endpoint, int]]) -> None:
        """`wanted`: the endpoint of each evaluation, and how many rollouts it would like to play at once."""
        self._services: dict[bytes, Service] = {}
        self._paces: dict[Place, Throttle] = defaultdict(Throttle)
        at_place: dict[Place, list[int]] = defaultdict(list)
        for endpoint, at_once in wanted:
            at_place[place_of(endpoint)].append(min(at_once, endpoint.max_concurrent or at_once))
        # One who has an endpoint to itself is bounded by its own limit already.
        self._budgets = {place: Gate(max(limits)) for place, limits in at_place.items() if len(limits) > 1}

    def of(self, endpoint: Endpoint) -> Service:
        """The one service for an endpoint: the same settings share connections, the same place its budget."""
        key = msgspec.json.encode(msgspec.structs.replace(endpoint, why=""))
        if key not in self._services:
            place = place_of(endpoint)
            self._services[key] = Service(open_model(endpoint), self._budgets.get(place), self._paces[place])
        return self._services[key]

    async def close(self) -> None:
        await asyncio.gather(*(service.close() for service in self._services.values()))


def place_of(endpoint: Endpoint) -> Place:
    return (endpoint.model, endpoint.address or endpoint.client_type)
