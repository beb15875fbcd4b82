"""Run in a sandbox after a push: load an environment, count its tasks, write down the findings.

    python -m proctor.runner.inspection MODULE FILE SECRET…

Failures are findings too; the names of declared secrets, which are not set here, tell a load that failed for
lack of one from any other. Knows nothing of servers.
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
    """What an environment reveals when it is loaded."""

    problem: str = ""
    """Why it cannot be played; empty if it can."""
    needs_secret: str = ""
    """The declared secret without which it could not be loaded."""
    tasks: int | None = None
    has_more_tasks: bool = False
    """There are more tasks than were counted."""
    mean_prompt_characters: float | None = None
    num_examples: int | None = None
    """The package's own defaults for how much is played."""
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
    """The same as a sentence of its own, if the error names a secret that the environment declares."""
    said = " ".join(str(each) for each in list_causes(error))
    for name in secrets:
        if re.search(rf"\b{re.escape(name)}\b", said):
            return EnvironmentInspection(
                problem=f"It needs the secret {name} to load, and checks run without secrets, so it could "
                "not be checked; read the secret when a task is played instead.",
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
    """Counts up to one more than the maximum."""
    return sum(1 for _ in islice(tasks, COUNTED_TASKS + 1))


def prompt_characters(task: Task) -> int:
    return sum(len(text_of(message)) for message in task.prompt)


def main() -> None:
    module, file, *secrets = sys.argv[1:]
    Path(file).write_bytes(msgspec.json.encode(inspect_module(module, secrets)))
    exit_now(0)


if __name__ == "__main__":
    main()
