"""`proctor.compare`: runs against runs, from Python. The same comparison as `proctor eval compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from proctor.comparison.compare import Comparison, compare_runs
from proctor.comparison.measure import ComparisonOptions
from proctor.comparison.scores import RunScores
from proctor.errors import ConfigError, StoreError
from proctor.store.index import find_run, search_folders
from proctor.store.scores import read_scores


class SavedResult(Protocol):
    """What `evaluate()` returns."""

    @property
    def folder(self) -> Path: ...


RunName = SavedResult | str | Path


def compare(
    baseline: RunName | Sequence[RunName],
    candidate: RunName | Sequence[RunName],
    *,
    margin: float | None = None,
    level: float = 0.95,
    min_coverage: float | None = None,
    metrics: Sequence[str] | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare a candidate with a baseline, task by task, and say whether it is better.

    Each side is what `evaluate()` returned, or names a run by its folder, its id, the beginning of its id, or
    "latest"; several runs of one recipe are pooled. With `margin`, the answer also says whether the candidate
    is no worse by more than that. `metrics` are those to compare beside the reward; all without it.
    """
    options = ComparisonOptions(
        level=level,
        margin=margin,
        min_coverage=min_coverage,
        metrics=None if metrics is None else tuple(metrics),
        seed=seed,
    )
    return compare_runs(read_side(baseline), read_side(candidate), options)


def read_side(named: RunName | Sequence[RunName]) -> list[RunScores]:
    single = isinstance(named, (str, Path)) or not isinstance(named, Sequence)
    runs: Sequence[RunName] = [named] if single else named  # type: ignore[list-item, assignment]
    if not runs:
        raise ConfigError("A side of a comparison has no run; pass a result, a folder, an id, or 'latest'.")
    return [read_run_scores(find_folder(each)) for each in runs]


def find_folder(run: RunName) -> Path:
    return find_run(str(run), search_folders()) if isinstance(run, (str, Path)) else run.folder


def read_run_scores(folder: Path) -> RunScores:
    try:
        return read_scores(folder, folder.name)
    except StoreError as error:
        raise ConfigError(str(error)) from error
