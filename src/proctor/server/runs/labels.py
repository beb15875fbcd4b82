"""People's scores of a run's rollouts: for each rollout and person, the last one. Knows nothing of HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, insert, select, tuple_

from proctor.api.labels import NewLabel, RunLabel
from proctor.api.refusals import InvalidError
from proctor.rollout import RolloutKey, is_score
from proctor.server.db.tables import rollouts, run_labels
from proctor.store.labels import Label, RunLabels
from proctor.task import TaskId

LabelPosition = tuple[str, int, str]
"""Task as JSON, number of the rollout, person: where a page of labels continues."""


def encode_task(task: TaskId) -> str:
    return msgspec.json.encode(task).decode()


def save_labels(
    connection: Connection, run_id: str, person: str, labels: Sequence[NewLabel], now: float
) -> int:
    """Store all labels or none; returns how many rollouts they are of."""
    last = {(encode_task(label.example_id), label.rollout): label for label in labels}
    for index, label in enumerate(labels):
        if label.score is not None and not is_score(label.score):
            raise InvalidError(
                "A score is a finite number from -1e100 to 1e100.", field=f"labels[{index}].score"
            )
    key = tuple_(rollouts.c.task, rollouts.c.number)
    query = select(rollouts.c.task, rollouts.c.number).where(rollouts.c.run_id == run_id, key.in_(list(last)))
    known = {(row.task, row.number) for row in connection.execute(query)}
    for task, number in last:
        if (task, number) not in known:
            raise InvalidError(f"The run has no rollout {number} of task {task}.", field="labels")
    own = tuple_(run_labels.c.task, run_labels.c.number)
    connection.execute(
        delete(run_labels).where(
            run_labels.c.run_id == run_id, run_labels.c.person == person, own.in_(list(last))
        )
    )
    values = [
        {
            "run_id": run_id,
            "task": task,
            "number": number,
            "person": person,
            "score": label.score,
            "note": label.note,
            "at": now,
        }
        for (task, number), label in last.items()
    ]
    connection.execute(insert(run_labels), values)
    return len(values)


def list_labels(
    connection: Connection, run_id: str, after: LabelPosition | None, limit: int, person: str | None
) -> list[RunLabel]:
    """Labels by task, rollout and person."""
    columns = (run_labels.c.task, run_labels.c.number, run_labels.c.person)
    query = select(run_labels).where(run_labels.c.run_id == run_id).order_by(*columns).limit(limit)
    if person is not None:
        query = query.where(run_labels.c.person == person)
    if after is not None:
        query = query.where(tuple_(*columns) > after)
    return [build_label(row) for row in connection.execute(query)]


def build_label(row: Row[Any]) -> RunLabel:
    return RunLabel(
        example_id=msgspec.json.decode(row.task),
        rollout=row.number,
        person=row.person,
        score=row.score,
        note=row.note,
        at=row.at,
    )


def cursor_of(label: RunLabel) -> LabelPosition:
    return (encode_task(label.example_id), label.rollout, label.person)


def read_run_labels(connection: Connection, run_id: str) -> RunLabels:
    """All labels of a run, by person."""
    found: dict[str, dict[RolloutKey, Label]] = {}
    for row in connection.execute(select(run_labels).where(run_labels.c.run_id == run_id)):
        label = msgspec.convert(build_label(row), Label, from_attributes=True)
        found.setdefault(label.person, {})[label.key] = label
    return RunLabels(found)
