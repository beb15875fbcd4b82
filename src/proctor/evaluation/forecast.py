"""Forecast what an evaluation will take: tokens, money and time, from the rollouts of a small pilot.

The task is the unit: rollouts of one task resemble each other. Knows nothing of terminals.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from proctor.config.prices import Price, find_price
from proctor.errors import ConfigError
from proctor.evaluation.prepare import Prepared
from proctor.evaluation.read_tasks import list_tasks
from proctor.report.lines import RolloutLine
from proctor.stats.prediction import PredictedTotal, predict_total, raise_total, scale_total
from proctor.store.folder import UNREADABLE
from proctor.store.traces import read_raw_lines
from proctor.task import TaskId
from proctor.trace import Usage

LEVEL = 0.95
Measure = Callable[[RolloutLine], float]
_decode_line = msgspec.json.Decoder(RolloutLine).decode


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluation will probably take; `--json` prints it unchanged."""

    environment: str
    model: str
    tasks: int
    rollouts_per_task: int
    pilot: str
    """The run that it is made from."""
    pilot_tasks: int
    pilot_rollouts: int
    level: float
    input_tokens: PredictedTotal
    output_tokens: PredictedTotal
    cost_usd: PredictedTotal | None
    """None without a price."""
    unpriced_models: tuple[str, ...]
    rollout_seconds: PredictedTotal
    """Of all rollouts together."""
    wall_seconds: PredictedTotal
    """With as many rollouts at once as the settings allow, and no rate limit in the way."""
    at_once: int


def choose_pilot(prepared: Prepared, tasks: int, rollouts: int) -> Prepared:
    """The same evaluation on a seeded random sample of its tasks."""
    chosen = list_tasks(prepared)
    if not chosen:
        raise ConfigError(f"{prepared.name} has no tasks; there is nothing to estimate.")
    sample = random.Random(prepared.config.seed).sample(chosen, min(tasks, len(chosen)))
    config = replace(
        prepared.config,
        task_ids=tuple(task.id for task in sample),
        num_examples=-1,
        rollouts_per_example=min(rollouts, prepared.config.rollouts_per_example),
        until_halfwidth=None,
        until_decided=None,
    )
    return replace(prepared, config=config)


def forecast(prepared: Prepared, pilot: Path) -> Forecast:
    """What the evaluation will take if its rollouts are like those of the run in the folder `pilot`."""
    lines = read_pilot_lines(pilot)
    if not lines:
        raise ConfigError(f"{pilot} has no finished rollouts to estimate from.")
    tasks = len(list_tasks(prepared))
    each = prepared.config.rollouts_per_example
    at_once = max(1, min(prepared.rules().at_once, tasks * each))
    prices = collect_prices(prepared, lines)

    def total(measure: Measure) -> PredictedTotal:
        return scale_total(predict_total(average_by_task(lines, measure), tasks, LEVEL), each)

    seconds = total(lambda line: line.timing.total)
    longest = max(line.timing.total for line in lines)
    return Forecast(
        environment=prepared.name,
        model=prepared.endpoint.model,
        tasks=tasks,
        rollouts_per_task=each,
        pilot=pilot.resolve().name,
        pilot_tasks=len({line.example_id for line in lines}),
        pilot_rollouts=len(lines),
        level=LEVEL,
        input_tokens=total(lambda line: spend(line).input_tokens),
        output_tokens=total(lambda line: spend(line).output_tokens),
        cost_usd=total(lambda line: price_line(line, prepared.endpoint.model, prices))
        if prepared.endpoint.model in prices
        else None,
        unpriced_models=tuple(
            sorted({model for line in lines for model in line.other_usage if model not in prices})
        ),
        rollout_seconds=seconds,
        # a run takes as long as its longest rollout, however many are played at once
        wall_seconds=raise_total(scale_total(seconds, 1 / at_once), longest),
        at_once=at_once,
    )


def read_pilot_lines(folder: Path) -> list[RolloutLine]:
    lines: dict[tuple[TaskId, int], RolloutLine] = {}
    for raw in read_raw_lines(folder):
        with suppress(*UNREADABLE):
            line = _decode_line(raw)
            lines[line.key] = line
    return list(lines.values())


def average_by_task(lines: Sequence[RolloutLine], measure: Measure) -> list[float]:
    by_task: dict[TaskId, list[float]] = {}
    for line in lines:
        by_task.setdefault(line.example_id, []).append(measure(line))
    return [sum(values) / len(values) for values in by_task.values()]


def spend(line: RolloutLine) -> Usage:
    """Tokens of the evaluated model, earlier attempts included."""
    return sum((attempt.usage for attempt in line.earlier_attempts), line.token_usage)


def price_line(line: RolloutLine, model: str, prices: Mapping[str, Price]) -> float:
    others = (prices[name].of(usage) for name, usage in line.other_usage.items() if name in prices)
    return prices[model].of(spend(line)) + sum(others)


def collect_prices(prepared: Prepared, lines: Sequence[RolloutLine]) -> dict[str, Price]:
    names = {name for line in lines for name in line.other_usage}
    found = {name: price for name in names if (price := find_price(name)) is not None}
    tariff = prepared.endpoint.tariff
    return found if tariff is None else {**found, prepared.endpoint.model: tariff}
