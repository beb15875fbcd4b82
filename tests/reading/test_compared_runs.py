"""Runs compared on the tasks they share, by the same functions as `proctor eval compare`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proctor.api.comparisons import CompareQuery, ComparisonPage
from proctor.api.refusals import InvalidError, NotFoundError
from proctor.comparison.compare import compare_runs
from proctor.comparison.measure import ComparisonOptions
from proctor.errors import ModelTimeoutError
from proctor.reading.compare_handler import get_comparison
from proctor.reading.compared_runs import collect_scores, compare_scores, count_points
from proctor.reading.entries import read_entry
from proctor.reading.exchange import ReadRequest
from proctor.reading.folders.find import find_run_folders
from proctor.reading.folders.library import FolderLibrary
from proctor.store.folder import read_metadata
from proctor.store.scores import read_scores
from tests.reading.conftest import Play
from tests.reading.records import indexed, record


@pytest.fixture(scope="module")
def runs(play: Play, outputs: Path) -> list[Path]:
    """A base that fails task 3, and another run that fails task 0 and has no answer for task 2."""
    base = play(outputs, {"say 3": "wrong", "": ()}, num_examples=3)
    other = play(outputs, {"say 0": "wrong", "say 2": ModelTimeoutError("none")})
    return [base, other]


def compare(outputs: Path, runs: list[str], **query: Any) -> ComparisonPage:
    async def main() -> ComparisonPage:
        library = FolderLibrary(lambda: find_run_folders([outputs]))
        try:
            return await get_comparison(library, ReadRequest({}, CompareQuery(run=runs, **query)))
        finally:
            library.close()

    return asyncio.run(main())


def test_the_verdict_is_that_of_the_command_line(runs: list[Path], outputs: Path) -> None:
    page = compare(outputs, [run.name for run in runs])

    (told,) = page.comparisons
    expected = compare_runs(
        [read_scores(runs[0], runs[0].name)],
        [read_scores(runs[1], runs[1].name)],
        ComparisonOptions(most_tasks=0),
    )
    assert told == expected
    assert page.base == runs[0].name
    assert [info.id for info in page.runs] == [run.name for run in runs]


def test_every_task_is_listed_with_both_sides_and_flipped_ones_first(runs: list[Path], outputs: Path) -> None:
    page = compare(outputs, [run.name for run in runs])

    assert [row.task for row in page.items] == [0, 1, 2, 3]
    flipped, same, unanswered, alone = page.items
    assert (flipped.flipped, flipped.difference) == (True, -1.0)
    assert [side.mean for side in flipped.sides] == [1.0, 0.0]
    assert flipped.sides[1].rollout is not None
    assert flipped.sides[1].rollout.run == runs[1].name
    assert (same.flipped, same.difference) == (False, 0.0)
    assert [side.mean for side in unanswered.sides] == [1.0, None]
    assert [side.mean for side in alone.sides] == [None, 1.0]
    assert [(point.base_mean, point.mean, point.tasks) for point in page.scatter] == [
        (1.0, 0.0, 1),
        (1.0, 1.0, 1),
    ]


def test_tasks_are_narrowed_down_and_paged(runs: list[Path], outputs: Path) -> None:
    names = [run.name for run in runs]

    assert [row.task for row in compare(outputs, names, only="flips").items] == [0]
    assert [row.task for row in compare(outputs, names, only="differences").items] == [0]
    assert compare(outputs, names, q="3").total == 1
    assert [row.task for row in compare(outputs, names, sort="task", offset=1, limit=2).items] == [1, 2]
    assert compare(outputs, names, base=names[1]).items[0].difference == 1.0
    assert compare(outputs, names, metric="repeats", sort="task").items[0].sides[1].mean == 0.0


def test_what_cannot_be_compared_is_named(runs: list[Path], outputs: Path) -> None:
    names = [run.name for run in runs]
    with pytest.raises(InvalidError, match="two different runs"):
        compare(outputs, [names[0], names[0]])
    with pytest.raises(InvalidError, match="is not one of the runs"):
        compare(outputs, names, base="other")
    with pytest.raises(InvalidError, match="has a metric 'style'"):
        compare(outputs, names, metric="style")
    with pytest.raises(NotFoundError):
        compare(outputs, [names[0], "nothing"])


def test_tasks_are_paired_by_content_before_their_ids() -> None:
    base = indexed([record("old name", task_hash="a" * 16), record("other", task_hash="b" * 16)])
    other = indexed([record("new name", task_hash="a" * 16, reward=0.0), record("other", task_hash="odd")])
    runs = [collect_scores(index, name, {}) for name, index in (("x", base), ("y", other))]

    compared = compare_scores(runs, 0, CompareQuery(run=["x", "y"]))

    assert [tuple(task and task.id for task in row.tasks) for row in compared.rows] == [
        ("old name", "new name"),
        ("other", "other"),
    ]


def test_scores_of_an_index_are_those_of_the_file(runs: list[Path]) -> None:
    for folder in runs:
        lines = (folder / "results.jsonl").read_bytes().splitlines(keepends=True)
        index = indexed([read_entry(raw).record for raw in lines])
        ours = collect_scores(index, folder.name, read_metadata(folder))
        theirs = read_scores(folder, folder.name)
        assert (ours.scored, ours.coverage, ours.settings) == (
            theirs.scored,
            theirs.coverage,
            theirs.settings,
        )
        assert {task.id: task.rewards for task in ours.tasks} == {
            task.id: task.rewards for task in theirs.tasks
        }
        assert {task.id: task.hash for task in ours.tasks} == {task.id: task.hash for task in theirs.tasks}


def test_many_points_are_counted_on_a_grid() -> None:
    points = [(number / 5_000, 1 - number / 5_000) for number in range(5_000)]

    counted = count_points(points)

    assert len(counted) < 400
    assert counted.total() == 5_000
