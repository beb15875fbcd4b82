"""What evaluations of one endpoint share."""

from __future__ import annotations

import pytest

from proctor.config.endpoints import Endpoint
from proctor.endpoints.endpoint import EndpointDemand, SharedEndpoints
from proctor.endpoints.rate_limit import RateLimitedModel

ENDPOINT = Endpoint(model="m", url="http://127.0.0.1:9/v1", requests_per_minute=630)


@pytest.mark.parametrize(
    ("in_workers", "per_minute"),
    [([False, False, False], 630), ([False, True, True], 210), ([False, False, True], 420)],
)
def test_those_who_ask_from_this_process_leave_the_others_their_part_of_the_rates(
    in_workers: list[bool], per_minute: float
) -> None:
    services = SharedEndpoints([EndpointDemand(ENDPOINT, 4, apart) for apart in in_workers])

    model = services.of(ENDPOINT).model

    assert isinstance(model, RateLimitedModel)
    assert model._requests is not None
    assert 63 / model._requests.seconds_each == pytest.approx(per_minute)


def test_the_same_endpoint_is_opened_once() -> None:
    services = SharedEndpoints([EndpointDemand(ENDPOINT, 4), EndpointDemand(ENDPOINT, 8)])

    service = services.of(ENDPOINT)

    assert services.of(ENDPOINT) is service
    assert service.budget is not None
    assert service.budget.limit == 8
