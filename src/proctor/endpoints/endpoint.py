"""SharedEndpoint: an endpoint opened once for all evaluations that use it, with one pace and one budget.

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
from proctor.endpoints.rate_limit import RateLimitedModel
from proctor.endpoints.replicas import ReplicatedModel
from proctor.engine.limits import ResizableSemaphore, Throttle

CapacityKey = tuple[str, str]
"""What has one capacity: a model at an address."""


def open_model(endpoint: Endpoint) -> Model:
    """The model behind an endpoint: metered and replicated as its registry entry says."""
    if endpoint.replicas:
        return ReplicatedModel([(open_single_model(replica), replica.url) for replica in endpoint.replicas])
    return open_single_model(endpoint)


def open_single_model(endpoint: Endpoint) -> Model:
    model: Model = plugins.load(plugins.MODELS, endpoint.client_type).at(endpoint)
    if endpoint.requests_per_minute or endpoint.tokens_per_minute:
        return RateLimitedModel(model, endpoint.requests_per_minute, endpoint.tokens_per_minute)
    return model


def divide_rates(endpoint: Endpoint, parts: float) -> Endpoint:
    """The same endpoint, with one of `parts` equal shares of its rates."""
    if parts == 1:
        return endpoint
    return msgspec.structs.replace(
        endpoint,
        requests_per_minute=endpoint.requests_per_minute and endpoint.requests_per_minute / parts,
        tokens_per_minute=endpoint.tokens_per_minute and endpoint.tokens_per_minute / parts,
        replicas=tuple(divide_rates(replica, parts) for replica in endpoint.replicas),
    )


class SharedEndpoint:
    """What evaluations of one endpoint share."""

    def __init__(
        self, model: Model, budget: ResizableSemaphore | None = None, pace: Throttle | None = None
    ) -> None:
        self.model = model
        self.budget = budget
        """Rollouts that may be played at once, of all evaluations together; None where one has it alone."""
        self.pace = pace or Throttle()
        self._checked: asyncio.Future[None] | None = None

    async def check(self) -> None:
        """Check the model once, however many evaluations share it."""
        if self._checked is None:
            self._checked = asyncio.ensure_future(self.model.check())
        await asyncio.shield(self._checked)

    async def close(self) -> None:
        await self.model.close()


class EndpointDemand(msgspec.Struct, frozen=True):
    """What one evaluation wants of its endpoint."""

    endpoint: Endpoint
    at_once: int
    """Rollouts it would play at once."""
    in_workers: bool = False
    """It sends requests from worker processes, each with a share of the endpoint's rates."""

    @property
    def most(self) -> int:
        return min(self.at_once, self.endpoint.max_concurrent or self.at_once)


class SharedEndpoints:
    """All endpoints of a suite, each opened once."""

    def __init__(self, demands: Iterable[EndpointDemand]) -> None:
        self._services: dict[bytes, SharedEndpoint] = {}
        self._paces: dict[CapacityKey, Throttle] = defaultdict(Throttle)
        self._demands: dict[CapacityKey, list[EndpointDemand]] = defaultdict(list)
        for demand in demands:
            self._demands[capacity_key(demand.endpoint)].append(demand)
        # An evaluation that has an endpoint to itself is bounded by its own limit already.
        self._budgets = {
            shared_key: ResizableSemaphore(max(demand.most for demand in demands))
            for shared_key, demands in self._demands.items()
            if len(demands) > 1
        }

    def of(self, endpoint: Endpoint) -> SharedEndpoint:
        """The same settings share connections; the same model at the same address shares a budget."""
        key = msgspec.json.encode(msgspec.structs.replace(endpoint, why=""))
        if key not in self._services:
            shared_key = capacity_key(endpoint)
            demands = self._demands[shared_key]
            here = sum(not demand.in_workers for demand in demands)
            ours = divide_rates(endpoint, len(demands) / here) if here else endpoint
            self._services[key] = SharedEndpoint(
                open_model(ours), self._budgets.get(shared_key), self._paces[shared_key]
            )
        return self._services[key]

    async def close(self) -> None:
        await asyncio.gather(*(service.close() for service in self._services.values()))


def capacity_key(endpoint: Endpoint) -> CapacityKey:
    return (endpoint.model, endpoint.address or endpoint.client_type)
