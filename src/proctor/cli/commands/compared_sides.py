"""Arguments → the runs they name, with their scores: one run, several of one recipe, or all runs in a folder.

Runs on a server are downloaded first. Knows nothing of what is done with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from proctor.client.runs import is_run_id
from proctor.comparison.scores import RunScores
from proctor.errors import ConfigError, StoreError
from proctor.report.summary import Summary
from proctor.store.index import (
    DAMAGED,
    StoredRun,
    expand_path,
    find_run,
    is_run_folder,
    list_runs_below,
    read_run,
    run_folders,
    search_folders,
)
from proctor.store.scores import read_scores, read_summary

SideKey = tuple[str, ...]


class NamedRun(msgspec.Struct, frozen=True):
    """A run, how to name it to other commands, and its scores."""

    stored: StoredRun
    word: str
    """What `proctor trace` finds it by."""
    scores: RunScores
    summary: Summary | None = None
    """Its report, if requested."""


class SideRuns(msgspec.Struct, frozen=True):
    """What one word on the command line names."""

    word: str
    runs: tuple[NamedRun, ...]

    def groups(self, *fields: str) -> dict[SideKey, list[NamedRun]]:
        """Its runs by these fields of their scores."""
        found: dict[SideKey, list[NamedRun]] = {}
        for run in self.runs:
            found.setdefault(tuple(getattr(run.scores, field) for field in fields), []).append(run)
        return found


class MatchedSides(msgspec.Struct, frozen=True):
    """The runs of one recipe on both sides."""

    baseline: tuple[NamedRun, ...]
    candidate: tuple[NamedRun, ...]

    @property
    def words(self) -> dict[str, str]:
        """What `proctor trace` finds each run by."""
        return {run.scores.run: run.word for run in (*self.baseline, *self.candidate)}


class SideMatch(msgspec.Struct, frozen=True):
    """The recipes that both sides have, and those that only one has, by name."""

    pairs: list[MatchedSides]
    only_baseline: dict[str, tuple[NamedRun, ...]] = {}
    only_candidate: dict[str, tuple[NamedRun, ...]] = {}


def read_side(word: str, dirs: Sequence[str] = (), summaries: bool = False) -> SideRuns:
    """The runs that a word names: a run, several with commas between them, or a folder of runs."""
    path = expand_path(word)
    if not is_run_folder(path) and path.is_dir():
        folders = sorted(list_runs_below(path))
        if not folders:
            raise ConfigError(f"No runs in {word}; name the folder of a run, or one that holds runs.")
        return SideRuns(word, tuple(read_local_run(folder, summaries) for folder in folders))
    words = [word] if "," not in word or path.exists() else [part for part in word.split(",") if part]
    return SideRuns(word, tuple(read_named_run(each, dirs, summaries) for each in words))


def read_named_run(word: str, dirs: Sequence[str] = (), summary: bool = False) -> NamedRun:
    if not is_run_id(word):
        return read_local_run(find_run(word, search_folders(dirs)), summary)
    from proctor.cli.commands.hosted_export import open_run

    with open_run(word) as stored:
        return name_run(stored, word, word, summary)


def read_local_run(folder: Path, summary: bool = False) -> NamedRun:
    stored = read_run(folder)
    if stored.status == DAMAGED:
        raise ConfigError(f"{folder}: {stored.note}.")
    return name_run(stored, stored.id, choose_word(folder), summary)


def choose_word(folder: Path) -> str:
    """The shortest word that `proctor trace` finds this run by: its id, or its path if it lies elsewhere."""
    known = [each for each in run_folders(search_folders()) if each.name == folder.name]
    is_found = len(known) == 1 and known[0].resolve() == folder.resolve()
    return folder.name if is_found else str(folder)


def name_run(stored: StoredRun, name: str, word: str, summary: bool) -> NamedRun:
    try:
        scores = read_scores(stored.folder, name, stored.planned)
        report = read_summary(stored.folder, stored.planned) if summary else None
    except StoreError as error:
        raise ConfigError(str(error)) from error
    return NamedRun(stored, word, scores, report)


def match_sides(baseline: SideRuns, candidate: SideRuns) -> SideMatch:
    """Pair the runs of two sides by what they evaluated.

    Where each side is one recipe, they are a pair whatever their names are.
    """
    recipe = ("environment", "model", "label")
    if len(baseline.groups(*recipe)) == len(candidate.groups(*recipe)) == 1:
        return SideMatch([MatchedSides(baseline.runs, candidate.runs)])
    fields = choose_fields(baseline, candidate)
    theirs, ours = baseline.groups(*fields), candidate.groups(*fields)
    matched = [MatchedSides(tuple(theirs[key]), tuple(ours[key])) for key in theirs if key in ours]
    if not matched:
        raise ConfigError(
            f"{baseline.word} and {candidate.word} have no environment in common: "
            f"{', '.join(map(join_key, theirs))} against {', '.join(map(join_key, ours))}."
        )
    return SideMatch(matched, list_alone(theirs, ours), list_alone(ours, theirs))


def list_alone(
    side: Mapping[SideKey, list[NamedRun]], other: Mapping[SideKey, object]
) -> dict[str, tuple[NamedRun, ...]]:
    return {join_key(key): tuple(runs) for key, runs in side.items() if key not in other}


def choose_fields(baseline: SideRuns, candidate: SideRuns) -> tuple[str, ...]:
    """What tells the recipes of a suite apart: the environment and what a sweep chose, and the model where a
    side has several."""
    for fields in (("environment", "label"), ("environment", "label", "model")):
        if all(has_one_model(side, fields) for side in (baseline, candidate)):
            return fields
    raise AssertionError("runs of one model have one model")


def has_one_model(side: SideRuns, fields: tuple[str, ...]) -> bool:
    return all(len({run.scores.model for run in group}) == 1 for group in side.groups(*fields).values())


def join_key(key: SideKey) -> str:
    return " ".join(part for part in key if part)
