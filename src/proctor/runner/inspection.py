"""Run behind walls after a push: load an environment, count its tasks, write down what was found.

    python -m proctor.runner.inspection MODULE FILE SECRET…

What goes wrong is written down as well; the names of declared secrets, which are not there, tell a load that
failed for want of one from any other. Knows nothing of servers.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Sequence, Sized
from itertools import islice
from pathlib import Path

import msgspec
from msgspec.structs import replace

from proctor.contracts import EnvironmentProtocol
from proctor.errors import ProctorError, list_causes
from proctor.packages import loading as packages
from proctor.support.loop import exit_now
from proctor.task import Task
from proctor.trace import text_of

COUNTED_TASKS = 100_000
MEASURED_TASKS = 1_000
SIZES = ("num_examples", "rollouts_per_example")


class EnvironmentInspection(msgspec.Struct, frozen=True, kw_only=True):
    """What an environment showed of itself."""

    problem: str = ""
    """Why it cannot be played; empty if it can."""
    needs_secret: str = ""
    """The declared secret that it could not be loaded without."""
    tasks: int | None = None
    has_more_tasks: bool = False
    """There are more than were counted."""
    mean_prompt_characters: float | None = None
    num_examples: int | None = None
    """What the package plays unless it is describe_error otherwise."""
    rollouts_per_example: int | None = None


def inspect_module(module: str, secrets: Sequence[str] = ()) -> EnvironmentInspection:
    try:
        found = packages.find_environment(module)
        defaults, _ = packages.package_defaults(found)
        environment = packages.load(found, {})
    except ProctorError as error:
        return without_secret(error, secrets) or EnvironmentInspection(problem=str(error))
    except Exception as error:
        traceback.print_exc()
        problem = EnvironmentInspection(problem=f"Loading it failed: {packages.describe_error(error)}")
        return without_secret(error, secrets) or problem
    try:
        return replace(inspect_tasks(environment), **{name: defaults.get(name) for name in SIZES})
    except Exception as error:
        traceback.print_exc()
        problem = EnvironmentInspection(problem=f"Reading its tasks failed: {packages.describe_error(error)}")
        return without_secret(error, secrets) or problem


def without_secret(error: BaseException, secrets: Sequence[str]) -> EnvironmentInspection | None:
    """The same in a sentence of its own, where an error names a secret that the environment declares."""
    said = " ".join(str(each) for each in list_causes(error))
    for name in secrets:
        if re.search(rf"\b{re.escape(name)}\b", said):
            return EnvironmentInspection(
                problem=f"It needs the secret {name} while it loads, and checks run without secrets, so "
                "nothing could be found out; let it read the secret when it is played.",
                needs_secret=name,
            )
    return None


def inspect_tasks(environment: EnvironmentProtocol) -> EnvironmentInspection:
    tasks = environment.tasks()
    first = list(islice(tasks, MEASURED_TASKS))
    if not first:
        return EnvironmentInspection(problem="It has no tasks.", tasks=0)
    number = len(tasks) if isinstance(tasks, Sized) else count_tasks(environment.tasks())
    return EnvironmentInspection(
        tasks=min(number, COUNTED_TASKS),
        has_more_tasks=number > COUNTED_TASKS,
        mean_prompt_characters=sum(map(prompt_characters, first)) / len(first),
    )


def count_tasks(tasks: Iterable[Task]) -> int:
    """One more than the most that are counted, where there are more."""
    return sum(1 for _ in islice(tasks, COUNTED_TASKS + 1))


def prompt_characters(task: Task) -> int:
    return sum(len(text_of(message)) for message in task.prompt)


def main() -> None:
    module, file, *secrets = sys.argv[1:]
    Path(file).write_bytes(msgspec.json.encode(inspect_module(module, secrets)))
    exit_now(0)


if __name__ == "__main__":
    main()
