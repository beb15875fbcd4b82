"""How much of a run's limits each of its workers has, so that together they never exceed them.

Knows nothing of processes.
"""

from __future__ import annotations

import msgspec

from proctor.endpoints.endpoint import divide_rates
from proctor.engine.player import Rules
from proctor.workers.frames import StartWorker


def limit_workers(count: int, rules: Rules) -> int:
    """No more processes than may do something at once: a share of nothing would wait for ever."""
    limits = (rules.at_once, rules.generation_at_once, rules.scoring_at_once)
    return min(count, *(limit for limit in limits if limit is not None))


def worker_share(start: StartWorker, count: int, seat: int, sharers: int = 1) -> StartWorker:
    """What the worker in this seat may do at once and per minute."""
    rules = start.rules

    def part(limit: int) -> int:
        return limit // count + (seat < limit % count)

    def part_of(limit: int | None) -> int | None:
        return None if limit is None else part(limit)

    return msgspec.structs.replace(
        start,
        rules=msgspec.structs.replace(
            rules,
            at_once=part(rules.at_once),
            generation_at_once=part_of(rules.generation_at_once),
            scoring_at_once=part_of(rules.scoring_at_once),
        ),
        endpoint=divide_rates(start.endpoint, count * sharers),
    )
