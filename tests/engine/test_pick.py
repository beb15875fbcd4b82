"""Tasks asked for by name."""

from __future__ import annotations

from itertools import count

import pytest

from proctor.engine import select as picking
from proctor.engine.select import find_named_tasks
from proctor.errors import UnknownNameError
from proctor.task import Task


def test_an_id_wins_over_a_place_and_the_order_is_that_of_the_tasks() -> None:
    tasks = [Task(id=name) for name in ("b", "0", "a")]

    assert [task.id for task in find_named_tasks(tasks, ["a", "0"])] == ["0", "a"]
    assert [task.id for task in find_named_tasks(tasks, [2, "b", "a", "a"])] == ["b", "a"]


def test_tasks_without_an_end_are_read_as_far_as_needed() -> None:
    endless = (Task(id=f"task-{number}") for number in count())

    assert [task.id for task in find_named_tasks(endless, ["task-7", "task-3"])] == ["task-3", "task-7"]


def test_a_name_that_nobody_has_ends_the_search_some_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picking, "MOST_READ", 1000)
    endless = (Task(id=number) for number in count())

    with pytest.raises(UnknownNameError, match="No task is called 'zebra'; there are 1,000, from"):
        find_named_tasks(endless, ["zebra"])
