"""What a run may cost, before it starts.

From rollouts that were played of the same environment, by the same model if there are any: the interval is
for this run's own total, so it is wide where rollouts differ or few are known. Without any, from the size of
the prompts that the check of the version saw. Knows nothing of HTTP or of how models are asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, select

from proctor.api.runs import Estimate
from proctor.config.prices import Price
from proctor.config.schema import EvalConfig
from proctor.server.db.tables import rollouts, runs, versions
from proctor.server.ledger.records import dollars, sum_available
from proctor.server.people.tokens import Caller
from proctor.server.runs.records import visibility_condition
from proctor.stats.distributions import t_critical
from proctor.trace import Usage

LEVEL = 0.95
MOST_ROLLOUTS = 2_000
"""The newest ones say enough."""
CHARACTERS_PER_TOKEN = 4
SHORT_REPLY_TOKENS = 16
LONG_REPLY_TOKENS = 1_024
"""Of a reply, where no limit was set."""


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is asked for, with everything found that it names."""

    environment_id: str
    version_id: str
    model: str
    """As the server calls it."""
    price: Price | None
    settings: Mapping[str, Any] = {}
    payer: str
    reader: Caller
    """Whose estimate it is: it tells nothing of runs that they may not see."""


class CostRange(msgspec.Struct, frozen=True):
    """Dollars, and where they come from."""

    basis: str
    low: float | None = None
    likely: float | None = None
    high: float | None = None


def estimate_cost(connection: Connection, planned: PlannedRun) -> Estimate:
    version = connection.execute(select(versions).where(versions.c.id == planned.version_id)).one()
    count = count_rollouts(planned.settings, version.check_facts, version.check_tasks)
    figures = estimate_range(connection, planned, version, count)
    left = sum_available(connection, planned.payer)
    return Estimate(
        rollouts=count,
        low_usd=figures.low,
        likely_usd=figures.likely,
        high_usd=figures.high,
        basis=figures.basis,
        available_usd=None if left is None else dollars(left),
    )


def count_rollouts(settings: Mapping[str, Any], facts: Mapping[str, Any], tasks: int | None) -> int | None:
    """By what is asked for, else by what the package says of itself, else by Proctor's own defaults."""
    examples = whole_number("num_examples", settings, facts)
    if examples < 0:
        if tasks is None:
            return None
        examples = tasks
    elif tasks is not None:
        examples = min(examples, tasks)
    return examples * max(0, whole_number("rollouts_per_example", settings, facts))


def whole_number(name: str, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> int:
    """A setting that counts; what a package says of itself may be anything."""
    for value in (settings.get(name), facts.get(name)):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return int(next(field.default for field in msgspec.structs.fields(EvalConfig) if field.name == name))


def estimate_range(
    connection: Connection, planned: PlannedRun, version: Row[Any], count: int | None
) -> CostRange:
    if planned.price is None:
        return CostRange(f"No price is known for {planned.model}; an admin can set one.")
    if count is None:
        return CostRange("Nobody knows how many tasks there are: this version was not checked yet.")
    if figures := range_from_history(connection, planned, planned.price, count):
        return figures
    return range_from_prompts(planned, planned.price, version.check_facts, count)


# From what was played


def range_from_history(
    connection: Connection, planned: PlannedRun, price: Price, count: int
) -> CostRange | None:
    for model, who in ((planned.model, planned.model), (None, "any model")):
        costs = [price.of(usage) for usage in list_past_usage(connection, planned, model)]
        if costs:
            low, high = prediction_interval(costs, count)
            basis = f"{len(costs)} earlier rollouts of this environment by {who}, at today's price."
            return CostRange(basis, low, count * fmean(costs), high)
    return None


def list_past_usage(connection: Connection, planned: PlannedRun, model: str | None) -> list[Usage]:
    """Tokens of the newest rollouts that took any, of runs that the reader may see."""
    query = (
        select(rollouts.c.input_tokens, rollouts.c.output_tokens)
        .join(runs, runs.c.id == rollouts.c.run_id)
        .where(runs.c.environment_id == planned.environment_id, rollouts.c.input_tokens > 0)
        .order_by(runs.c.created_at.desc(), rollouts.c.place.desc())
        .limit(MOST_ROLLOUTS)
    )
    if model is not None:
        query = query.where(runs.c.model == model)
    if (visible := visibility_condition(planned.reader)) is not None:
        query = query.where(visible)
    return [Usage(row.input_tokens, row.output_tokens) for row in connection.execute(query)]


def prediction_interval(costs: Sequence[float], count: int) -> tuple[float | None, float | None]:
    """Where the total of so many further rollouts will lie; nobody knows after a single one."""
    known = len(costs)
    if known < 2:
        return None, None
    # The mean is not known exactly, and the new rollouts scatter around it too.
    reach = t_critical(LEVEL, known - 1) * stdev(costs) * count * sqrt(1 / known + 1 / max(1, count))
    total = count * fmean(costs)
    return max(0.0, total - reach), total + reach


# From what is asked


def range_from_prompts(planned: PlannedRun, price: Price, facts: Mapping[str, Any], count: int) -> CostRange:
    characters = facts.get("mean_prompt_characters")
    if not isinstance(characters, int | float):
        return CostRange("Nothing was played of this environment yet, and its prompts are not known.")
    prompt = round(characters / CHARACTERS_PER_TOKEN)
    longest = planned.settings.get("max_tokens") or LONG_REPLY_TOKENS
    shortest = min(SHORT_REPLY_TOKENS, longest)
    low, high = (count * price.of(Usage(prompt, reply)) for reply in (shortest, longest))
    basis = (
        f"nothing was played of this environment yet; {prompt} tokens of prompt and one reply of {shortest} "
        f"to {longest} tokens for each rollout. Tools and further turns come on top."
    )
    return CostRange(basis[0].upper() + basis[1:], low, sqrt(low * high) if low else high / 2, high)
