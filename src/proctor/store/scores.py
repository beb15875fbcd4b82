"""Read the scores and the report of a stored run. Knows a run's files, and nothing of verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.comparison.scores import RunScores, ScoreLine, ScoresBuilder, TaskScores
from proctor.config.prices import find_price
from proctor.contracts import PASS_THRESHOLD
from proctor.report.lines import RolloutLine
from proctor.report.summary import Summary
from proctor.report.tally import Tally
from proctor.rollout import RolloutKey
from proctor.store.folder import UNREADABLE, read_metadata
from proctor.store.traces import read_raw_lines

COMPARED = (
    "model",
    "base_url",
    "agent",
    "agent_args",
    "max_steps",
    "sampling_args",
    "env_args",
    "extra_env_kwargs",
    "num_examples",
    "rollouts_per_example",
    "task_ids",
    "shuffle",
    "seed",
    "pass_threshold",
)
"""Settings that may explain a difference."""
OF_ENVIRONMENT = ("version", "content_hash", "git_commit")

_decode_line = msgspec.json.Decoder(ScoreLine).decode
_decode_whole_line = msgspec.json.Decoder(RolloutLine).decode


def read_scores(folder: Path, name: str, planned: int | None = None) -> RunScores:
    """The scores of the run in a folder, under the name that readers know it by.

    `planned` is how many rollouts it was to have, where the caller knows that better than its metadata.
    """
    stored = read_metadata(folder)
    builder, unreadable = ScoresBuilder(), 0
    for raw in read_raw_lines(folder):
        try:
            builder.add(_decode_line(raw))
        except UNREADABLE:
            unreadable += 1  # its rollout counts as missing
    return assemble_scores(stored, name, builder.tasks(), planned, builder.excluded, unreadable)


def assemble_scores(
    stored: Mapping[str, Any],
    name: str,
    tasks: Sequence[TaskScores],
    planned: int | None = None,
    excluded: int = 0,
    unreadable: int = 0,
) -> RunScores:
    """The scores of a run by its metadata and the scores of its tasks."""
    config = _mapping(stored.get("config"))
    known = stored.get("planned")
    return RunScores(
        run=name,
        environment=str(stored.get("name") or stored.get("env_id") or ""),
        model=str(stored.get("model") or ""),
        label=str(stored.get("label") or ""),
        settings=flatten_settings(stored),
        planned=planned if planned is not None else known if isinstance(known, int) else None,
        excluded=excluded,
        min_coverage=_number(config.get("min_coverage"), 1.0),
        pass_threshold=_number(stored.get("pass_threshold"), PASS_THRESHOLD),
        unreadable=unreadable,
        tasks=tasks,
    )


def flatten_settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that may explain a difference; the entries of an object each under a name of their own."""
    found: dict[str, Any] = {}
    for name in COMPARED:
        value = stored.get(name)
        if isinstance(value, Mapping):
            found |= {f"{name}.{key}": each for key, each in value.items()}
        elif value is not None:
            found[name] = value
    if (stop := _mapping(stored.get("early_stop"))).get("reached"):
        found["early_stop"] = stop.get("text")  # its tests here are for a single look
    environment = _mapping(stored.get("environment"))
    found |= {f"environment.{name}": environment[name] for name in OF_ENVIRONMENT if environment.get(name)}
    return found


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object, default: float) -> float:
    return value if isinstance(value, (int, float)) else default


def read_summary(folder: Path, planned: int | None = None) -> Summary:
    """The report of the run in a folder, computed from its rows; its cost is what the run itself booked."""
    stored = read_metadata(folder)
    tally = Tally(_number(stored.get("pass_threshold"), PASS_THRESHOLD))
    settled: set[RolloutKey] = set()
    failed: dict[RolloutKey, RolloutLine] = {}
    for raw in read_raw_lines(folder):
        with suppress(*UNREADABLE):
            line = _decode_whole_line(raw)
            if line.key in settled:
                continue
            if line.is_settled:
                settled.add(line.key)
                tally.add(line)
            else:
                failed[line.key] = line
    for key, line in failed.items():
        if key not in settled:
            tally.add(line)
    known = stored.get("planned")
    model = str(stored.get("model") or "")
    prices = {name: price for name in (model, *tally.other_usage) if (price := find_price(name)) is not None}
    summary = tally.summary(
        planned=planned if planned is not None else known if isinstance(known, int) else None,
        rollouts_per_task=int(_number(stored.get("rollouts_per_example"), 1)),
        model=model,
        prices=prices,
    )
    booked = _mapping(stored.get("cost")).get("total_usd")
    return msgspec.structs.replace(summary, cost_usd=booked) if isinstance(booked, (int, float)) else summary


def read_rollout_scores(folder: Path, metric: str | None = None) -> dict[RolloutKey, float]:
    """Each scored rollout's reward, or one of its metrics; of two rows of one rollout, the first counts."""
    found: dict[RolloutKey, float] = {}
    for raw in read_raw_lines(folder):
        with suppress(*UNREADABLE):
            line = _decode_line(raw)
            value = line.reward if metric is None else line.metrics.get(metric)
            if line.is_scored and value is not None:
                found.setdefault((line.example_id, line.rollout), value)
    return found
