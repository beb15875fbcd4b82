"""Estimate what a run may cost, before it starts.

From earlier rollouts of the same environment, by the same model if there are any: the interval is for this
run's own total, so it is wide if rollouts differ or few are known. Without any, from the size of the prompts
that the check of the version saw. Knows nothing of HTTP or of how models are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from proctor.api.runs import Estimate
from proctor.config.prices import Price
from proctor.config.schema import EvalConfig
from proctor.server.db.tables import rollouts, runs, versions
from proctor.server.ledger.records import dollars, sum_available
from proctor.server.people.tokens import Caller
from proctor.server.runs.records import visibility_condition
from proctor.stats.prediction import predict_total
from proctor.trace import Usage

MOST_ROLLOUTS = 2_000
"""The newest ones suffice."""
CHARACTERS_PER_TOKEN = 4
SHORT_REPLY_TOKENS = 16
LONG_REPLY_TOKENS = 1_024
"""Of a reply, if no limit was set."""


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A requested run, with everything it names resolved."""

    environment_id: str
    version_id: str
    model: str
    """The server's name for it."""
    price: Price | None
    settings: Mapping[str, Any] = {}
    payer: str
    reader: Caller
    """The user the estimate is for: it reveals nothing of runs that they may not see."""
    facts: Mapping[str, Any] = {}
    """What is known of the tasks beyond what the check of the version saw."""


class CostRange(msgspec.Struct, frozen=True):
    """Dollars, and their origin."""

    basis: str
    low: float | None = None
    likely: float | None = None
    high: float | None = None


def estimate_cost(connection: Connection, planned: PlannedRun) -> Estimate:
    version = connection.execute(select(versions).where(versions.c.id == planned.version_id)).one()
    facts = {**version.check_facts, **planned.facts}
    count = count_rollouts(planned.settings, facts, version.check_tasks)
    figures = estimate_range(connection, planned, facts, count)
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
    """From the request, else from the package's own settings, else Proctor's defaults."""
    examples = whole_number("num_examples", settings, facts)
    if examples < 0:
        if tasks is None:
            return None
        examples = tasks
    elif tasks is not None:
        examples = min(examples, tasks)
    return examples * max(0, whole_number("rollouts_per_example", settings, facts))


def whole_number(name: str, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> int:
    """A setting that is a count; a package's own settings may be anything."""
    for value in (settings.get(name), facts.get(name)):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return int(next(field.default for field in msgspec.structs.fields(EvalConfig) if field.name == name))


def estimate_range(
    connection: Connection, planned: PlannedRun, facts: Mapping[str, Any], count: int | None
) -> CostRange:
    if planned.price is None:
        return CostRange(f"No price is known for {planned.model}; an admin can set one.")
    if count is None:
        return CostRange("The number of tasks is unknown: this version was not checked yet.")
    if figures := range_from_history(connection, planned, planned.price, count):
        return figures
    return range_from_prompts(planned, planned.price, facts, count)


# From earlier rollouts


def range_from_history(
    connection: Connection, planned: PlannedRun, price: Price, count: int
) -> CostRange | None:
    for model, who in ((planned.model, planned.model), (None, "any model")):
        costs = [price.of(usage) for usage in list_past_usage(connection, planned, model)]
        if costs:
            total = predict_total(costs, count)
            known = "1 earlier rollout" if len(costs) == 1 else f"{len(costs)} earlier rollouts"
            basis = f"{known} of this environment by {who}, at today's price."
            return CostRange(basis, total.low, total.likely, total.high)
    return None


def list_past_usage(connection: Connection, planned: PlannedRun, model: str | None) -> list[Usage]:
    """Tokens of the newest rollouts that used any, of runs that the reader may see."""
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


# From prompts


def range_from_prompts(planned: PlannedRun, price: Price, facts: Mapping[str, Any], count: int) -> CostRange:
    characters = facts.get("mean_prompt_characters")
    if not isinstance(characters, int | float):
        return CostRange("This environment was not played yet, and the size of its prompts is unknown.")
    prompt = round(characters / CHARACTERS_PER_TOKEN)
    longest = planned.settings.get("max_tokens") or LONG_REPLY_TOKENS
    shortest = min(SHORT_REPLY_TOKENS, longest)
    low, high = (count * price.of(Usage(prompt, reply)) for reply in (shortest, longest))
    basis = (
        f"this environment was not played yet; {prompt} tokens of prompt and one reply of {shortest} "
        f"to {longest} tokens per rollout. Tools and further turns are not included."
    )
    return CostRange(basis[0].upper() + basis[1:], low, sqrt(low * high) if low else high / 2, high)
