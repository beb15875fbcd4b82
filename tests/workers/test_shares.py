"""What each worker may do, and what they may do together."""

from __future__ import annotations

import pytest

from proctor.config.endpoints import Endpoint
from proctor.config.schema import EvalConfig
from proctor.engine.player import Rules
from proctor.packages.loading import EnvironmentLocation
from proctor.workers.frames import StartWorker
from proctor.workers.shares import limit_workers, worker_share


def start(rules: Rules, endpoint: Endpoint | None = None) -> StartWorker:
    return StartWorker(
        number=0,
        folder="",
        found=EnvironmentLocation(env_id="env", module="env"),
        config=EvalConfig(env_id="env"),
        endpoint=endpoint or Endpoint(model="m"),
        rules=rules,
    )


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_workers_together_do_exactly_what_the_run_may_do(count: int) -> None:
    rules = Rules(at_once=32, generation_at_once=7, scoring_at_once=20)

    shares = [worker_share(start(rules), count, seat).rules for seat in range(count)]

    assert sum(share.at_once for share in shares) == 32
    assert sum(share.generation_at_once or 0 for share in shares) == 7
    assert sum(share.scoring_at_once or 0 for share in shares) == 20


def test_there_are_no_more_workers_than_may_do_something() -> None:
    assert limit_workers(8, Rules(at_once=32)) == 8
    assert limit_workers(8, Rules(at_once=3)) == 3
    assert limit_workers(8, Rules(at_once=32, generation_at_once=5, scoring_at_once=2)) == 2


def test_rates_are_divided_among_the_workers_of_all_evaluations_that_share_them() -> None:
    replica = Endpoint(model="m", requests_per_minute=600, tokens_per_minute=6000)
    endpoint = Endpoint(model="m", replicas=(replica, replica))

    share = worker_share(start(Rules(), endpoint), 2, 0, sharers=3)

    assert [each.requests_per_minute for each in share.endpoint.replicas] == [100, 100]
    assert [each.tokens_per_minute for each in share.endpoint.replicas] == [1000, 1000]
