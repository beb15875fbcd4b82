"""Several evaluations side by side, as data: what was chosen for each, which is the best, what they cost.

Knows nothing of terminals.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.evaluation.evaluate import Result
from proctor.trace import Usage

KEY = re.compile(r"(?:^|\s)([^\s=]+)=")


class SuiteRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of several evaluations, and its result."""

    name: str
    """Of the environment, or what the run was called instead."""
    model: str
    label: str = ""
    """What a sweep chose for it: 'temperature=0.5 difficulty=hard'."""
    result: Result | None = None
    error: str = ""
    """Why there is no result."""
    min_coverage: float = 1.0
    own_price: bool = False
    """The endpoint has a price of its own, instead of the list price."""

    @property
    def status(self) -> str:
        return "failed" if self.result is None else self.result.run.status

    @property
    def reason(self) -> str:
        """Why it failed or was stopped."""
        return self.error if self.result is None else self.result.run.note

    @property
    def has_verdict(self) -> bool:
        """Whether enough was scored to believe the mean."""
        if self.result is None or self.result.summary.reward.mean is None:
            return False
        coverage = self.result.summary.coverage
        return coverage is not None and coverage >= self.min_coverage


class SuiteTotal(msgspec.Struct, frozen=True):
    """What all runs used together."""

    runs: dict[str, int]
    """How many, by how they ended."""
    usage: Usage
    cost_usd: float | None
    """Of the runs with a price; None if there is none."""
    unpriced_runs: int
    """In which some model has no price."""


def parse_label(label: str) -> dict[str, str]:
    """'temperature=0.5 difficulty=hard' as pairs; nothing where it is not made of pairs."""
    keys = list(KEY.finditer(label))
    if not keys or keys[0].start():
        return {}
    ends = [key.start() for key in keys[1:]] + [len(label)]
    return {key[1]: label[key.end() : end] for key, end in zip(keys, ends, strict=True)}


def find_swept_keys(rows: Sequence[SuiteRow]) -> list[str]:
    """What was varied, if that is the same for all rows."""
    keys = [list(parse_label(row.label)) for row in rows]
    return keys[0] if keys and all(each == keys[0] for each in keys) else []


def find_best_rows(rows: Sequence[SuiteRow]) -> set[int]:
    """For each environment the row whose interval lies above those of all others, if there is one.

    A row without an interval might lie anywhere, so beside one nothing is called the best.
    """
    by_name: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        if row.result is not None and row.result.summary.scored:
            by_name.setdefault(row.name, []).append(index)
    found = (find_best_row(rows, indexes) for indexes in by_name.values())
    return {index for index in found if index is not None}


def find_best_row(rows: Sequence[SuiteRow], indexes: Sequence[int]) -> int | None:
    intervals = {}
    for index in indexes:
        result = rows[index].result
        if result is None or result.summary.reward.interval is None:
            return None
        intervals[index] = result.summary.reward.interval
    if len(intervals) < 2:
        return None
    best = max(intervals, key=lambda index: intervals[index].low)
    beaten = all(intervals[best].low > intervals[other].high for other in intervals if other != best)
    return best if beaten and rows[best].has_verdict else None


def sum_totals(rows: Sequence[SuiteRow]) -> SuiteTotal:
    summaries = [row.result.summary for row in rows if row.result is not None]
    usage = sum((summary.usage for summary in summaries), Usage())
    costs = [summary.cost_usd for summary in summaries if summary.cost_usd is not None]
    return SuiteTotal(
        runs=dict(Counter(row.status for row in rows)),
        usage=usage,
        cost_usd=sum(costs) if costs else None,
        unpriced_runs=sum(bool(summary.unpriced_models) for summary in summaries),
    )


def suite_document(rows: Sequence[SuiteRow]) -> dict[str, Any]:
    """The comparison for `--json`: plain data, runs in the order they came."""
    best = find_best_rows(rows)
    return {
        "runs": [run_document(row, index in best) for index, row in enumerate(rows)],
        "total": msgspec.to_builtins(sum_totals(rows)),
    }


def run_document(row: SuiteRow, is_best: bool) -> Mapping[str, Any]:
    result = row.result
    return {
        "environment": row.name,
        "model": row.model,
        "label": row.label,
        "chosen": parse_label(row.label),
        "status": row.status,
        "error": row.reason or None,
        "best": is_best,
        "verdict": row.has_verdict,
        "run": None if result is None else msgspec.to_builtins(result.run),
        "folder": None if result is None else str(result.folder),
        "summary": None if result is None else msgspec.to_builtins(result.summary),
    }
