"""State: what an author's code sees of one rollout, as a dictionary to read and write.

Knows nothing of how the rollout is played.
"""

from __future__ import annotations

from proctor.task import Task
from proctor.types import State as State
from proctor.types import to_messages


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
