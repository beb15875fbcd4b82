"""Run behind walls after a push: load an environment, count its tasks, write down what was found.

    python -m proctor.hosting.looking MODULE FILE

What goes wrong is written down as well. Knows nothing of servers.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Sized
from itertools import islice
from pathlib import Path

import msgspec
from msgspec.structs import replace

from proctor.contracts import Environment
from proctor.errors import ProctorError
from proctor.host import packages
from proctor.loop import leave
from proctor.task import Task
from proctor.trace import text_of

COUNTED_TASKS = 100_000
MEASURED_TASKS = 1_000
SIZES = ("num_examples", "rollouts_per_example")


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What an environment showed of itself."""

    problem: str = ""
    """Why it cannot be played; empty if it can."""
    tasks: int | None = None
    has_more_tasks: bool = False
    """There are more than were counted."""
    mean_prompt_characters: float | None = None
    num_examples: int | None = None
    """What the package plays unless it is told otherwise."""
    rollouts_per_example: int | None = None


def look_at(module: str) -> Looked:
    try:
        found = packages.find(module)
        defaults, _ = packages.package_defaults(found)
        environment = packages.load(found, {})
    except ProctorError as error:
        return Looked(problem=str(error))
    except Exception as error:
        traceback.print_exc()
        return Looked(problem=f"Loading it failed: {packages.told(error)}")
    try:
        return replace(count(environment), **{name: defaults.get(name) for name in SIZES})
    except Exception as error:
        traceback.print_exc()
        return Looked(problem=f"Reading its tasks failed: {packages.told(error)}")


def count(environment: Environment) -> Looked:
    tasks = environment.tasks()
    first = list(islice(tasks, MEASURED_TASKS))
    if not first:
        return Looked(problem="It has no tasks.", tasks=0)
    number = len(tasks) if isinstance(tasks, Sized) else counted(environment.tasks())
    return Looked(
        tasks=min(number, COUNTED_TASKS),
        has_more_tasks=number > COUNTED_TASKS,
        mean_prompt_characters=sum(map(prompt_characters, first)) / len(first),
    )


def counted(tasks: Iterable[Task]) -> int:
    """One more than the most that are counted, where there are more."""
    return sum(1 for _ in islice(tasks, COUNTED_TASKS + 1))


def prompt_characters(task: Task) -> int:
    return sum(len(text_of(message)) for message in task.prompt)


def main() -> None:
    module, file = sys.argv[1:]
    Path(file).write_bytes(msgspec.json.encode(look_at(module)))
    leave(0)


if __name__ == "__main__":
    main()
