"""Find tasks by name. Knows tasks, and nothing of where the names come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proctor.errors import UnknownNameError, did_you_mean
from proctor.task import Task

MOST_READ = 1_000_000
"""A source of tasks may be endless; the search ends here."""
SHOWN = 20


def find_named_tasks(tasks: Iterable[Task], names: Sequence[str | int]) -> list[Task]:
    """The named tasks in their own order. A name is an id or, if no id matches, an index from 0."""
    wanted = {str(name) for name in names}
    by_id: dict[str, tuple[int, Task]] = {}
    by_index: dict[str, tuple[int, Task]] = {}
    known: list[str] = []
    for index, task in zip(range(MOST_READ), tasks, strict=False):
        known.append(str(task.id))
        if str(task.id) in wanted:
            by_id.setdefault(str(task.id), (index, task))
        if str(index) in wanted:
            by_index[str(index)] = (index, task)
        if len(by_id) == len(wanted):
            break
    found = {**by_index, **by_id}
    missing = [str(name) for name in names if str(name) not in found]
    if missing:
        raise UnknownNameError(f"No task is called {missing[0]!r}{suggest_names(missing[0], known)}")
    return [task for _, task in sorted(dict(found.values()).items())]


def suggest_names(name: str, known: Sequence[str]) -> str:
    nearest = did_you_mean(name, known)
    if nearest.startswith("; did") or len(known) <= SHOWN:
        return nearest
    return f"; there are {len(known):,}, from {known[0]!r} to {known[-1]!r}."
