"""State: what an author's code sees of one rollout, as a dictionary to read and write.

Knows nothing of how the rollout is played.
"""

from __future__ import annotations

from typing import Any

from proctor.contracts import Seat
from proctor.task import Task
from proctor.types import to_messages


class State(dict[str, Any]):
    """Holds `prompt`, `completion`, `answer`, `info`, `task`, `example_id`, `turn`, `trajectory`, every
    further column of the task's row, and whatever the author's code puts there."""

    __slots__ = ("seat",)

    seat: Seat
    """The rollout's access to models; set when it is played."""


def state_of(task: Task, name: str) -> State:
    state = State(task.columns)
    state.update(
        example_id=task.id,
        prompt=to_messages(task.prompt),
        completion=[],
        answer=task.answer,
        info=task.info,
        turn=0,
        trajectory=[],
    )
    state.setdefault("task", name)
    return state
