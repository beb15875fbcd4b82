"""Estimate what a run may cost, before it starts.

From earlier rollouts of the same environment, by the same model if there are any: the interval is for this
run's own total, so it is wide if rollouts differ or few are known. Without any, from the size of the prompts
that the check of the version saw. Knows nothing of HTTP or of how models are called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from proctor.api.runs import Estimate
from proctor.config.prices import Price
from proctor.config.schema import EvalConfig
from proctor.server.db.tables import versions
from proctor.server.ledger.past_rollouts import PastRollout, PlannedRun, describe_past, read_past
from proctor.server.ledger.precision import predict_precision
from proctor.server.ledger.records import dollars, sum_available
from proctor.server.ledger.usage_forecast import NOTHING_KNOWN, guess_sizes, predict_volume
from proctor.stats.prediction import predict_total
from proctor.trace import Usage

MOST_COUNTED = 10**9
"""Of tasks, and of rollouts of one: the formulas are for numbers that somebody could play."""


class CostRange(msgspec.Struct, frozen=True):
    """Dollars, and their origin."""

    basis: str
    low: float | None = None
    likely: float | None = None
    high: float | None = None


class PlannedSize(msgspec.Struct, frozen=True):
    """How much a run will play."""

    tasks: int | None
    """None if it is unknown."""
    rollouts_per_task: int

    @property
    def rollouts(self) -> int | None:
        return None if self.tasks is None else self.tasks * self.rollouts_per_task


def build_estimate(connection: Connection, planned: PlannedRun) -> Estimate:
    """What a run may take and show."""
    facts, size = read_size(connection, planned)
    past, by = read_past(connection, planned)
    figures = choose_range(planned, facts, size.rollouts, past, by)
    volume = predict_volume(planned, facts, size.rollouts, past, by)
    precision = predict_precision(connection, planned, size.tasks, size.rollouts_per_task)
    left = sum_available(connection, planned.payer)
    available = None if left is None else dollars(left)
    known = available is not None and figures.likely is not None
    return Estimate(
        rollouts=size.rollouts,
        tasks=size.tasks,
        rollouts_per_task=size.rollouts_per_task,
        low_usd=figures.low,
        likely_usd=figures.likely,
        high_usd=figures.high,
        basis=figures.basis,
        calls=volume.calls,
        input_tokens=volume.input_tokens,
        output_tokens=volume.output_tokens,
        minutes=volume.minutes,
        volume_basis=volume.basis,
        payer=planned.payer,
        available_usd=available,
        after_usd=(available or 0.0) - (figures.likely or 0.0) if known else None,
        halfwidth=precision.halfwidth,
        halfwidth_is_bound=precision.is_bound,
        halfwidth_basis=precision.basis,
    )


def estimate_range(connection: Connection, planned: PlannedRun) -> CostRange:
    """What it may cost, and nothing else."""
    facts, size = read_size(connection, planned)
    past, by = read_past(connection, planned)
    return choose_range(planned, facts, size.rollouts, past, by)


# Its size


def read_size(connection: Connection, planned: PlannedRun) -> tuple[Mapping[str, Any], PlannedSize]:
    version = connection.execute(select(versions).where(versions.c.id == planned.version_id)).one()
    facts = {**version.check_facts, **planned.facts}
    return facts, plan_size(planned.settings, facts, version.check_tasks)


def plan_size(settings: Mapping[str, Any], facts: Mapping[str, Any], tasks: int | None) -> PlannedSize:
    """From the request, else from the package's own settings, else Proctor's defaults."""
    examples: int | None = whole_number("num_examples", settings, facts)
    if named := settings.get("task_ids"):
        examples = len(named)
    elif examples is None or examples < 0:
        examples = tasks
    elif tasks is not None:
        examples = min(examples, tasks)
    return PlannedSize(examples, max(0, whole_number("rollouts_per_example", settings, facts)))


def whole_number(name: str, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> int:
    """A setting that is a count; a package's own settings may be anything."""
    for value in (settings.get(name), facts.get(name)):
        if isinstance(value, int) and not isinstance(value, bool):
            return min(value, MOST_COUNTED)
    return int(next(field.default for field in msgspec.structs.fields(EvalConfig) if field.name == name))


# Its cost


def choose_range(
    planned: PlannedRun,
    facts: Mapping[str, Any],
    count: int | None,
    past: Sequence[PastRollout],
    by: str,
) -> CostRange:
    price = planned.price
    if price is None:
        return CostRange(f"No price is known for {planned.model}; an admin can set one.")
    if count is None:
        return CostRange("The number of tasks is unknown: this version was not checked yet.")
    if past:
        total = predict_total([price.of(each.usage) for each in past], count)
        basis = f"{describe_past(past, by)}, at today's price."
        return CostRange(basis, total.low, total.likely, total.high)
    return range_from_prompts(planned, price, facts, count)


def range_from_prompts(planned: PlannedRun, price: Price, facts: Mapping[str, Any], count: int) -> CostRange:
    sizes = guess_sizes(planned, facts)
    if sizes is None:
        return CostRange(NOTHING_KNOWN)
    low, high = (count * price.of(Usage(sizes.prompt, reply)) for reply in (sizes.shortest, sizes.longest))
    return CostRange(sizes.basis, low, sqrt(low * high) if low else high / 2, high)
