"""Run in a sandbox after a push: load an environment, count its tasks, write down the findings.

    python -m proctor.runner.inspection MODULE FILE SECRET…

Failures are findings too; the names of declared secrets, which are not set here, tell a load that failed for
lack of one from any other. Knows nothing of servers.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from pathlib import Path

import msgspec
from msgspec.structs import replace

from proctor.api.hub import LARGEST_TASKS, MOST_TASKS, TaskInfo, TaskList, VersionDetails
from proctor.contracts import EnvironmentProtocol
from proctor.errors import ProctorError, list_causes
from proctor.evaluation.prepare import TASK_FILE_DEFAULTS
from proctor.packages import loading as packages
from proctor.packages.loading import EnvironmentLocation
from proctor.runner.version_details import describe_loading, describe_source
from proctor.support.loop import exit_now
from proctor.task import Task, stable_repr
from proctor.trace import text_of

COUNTED_TASKS = 100_000
MEASURED_TASKS = 1_000
LONGEST_PROMPT = 400
"""Characters of a prompt that a list of tasks shows."""
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
    task_list: TaskList = []
    details: VersionDetails | None = None


def inspect_module(module: str, secrets: Sequence[str] = ()) -> EnvironmentInspection:
    try:
        found = packages.find_environment(module)
    except ProctorError as error:
        return EnvironmentInspection(problem=str(error))
    inspection = inspect_found(found, secrets)
    return replace(inspection, details=inspection.details or describe_source(found))


def inspect_found(found: EnvironmentLocation, secrets: Sequence[str]) -> EnvironmentInspection:
    try:
        defaults, _ = packages.package_defaults(found)
        if packages.find_task_source(found) is not None:
            defaults = {**TASK_FILE_DEFAULTS, **defaults}
        environment = packages.load(found, {})
    except ProctorError as error:
        return without_secret(error, secrets) or EnvironmentInspection(problem=str(error))
    except Exception as error:
        traceback.print_exc()
        problem = EnvironmentInspection(problem=f"Loading it failed: {packages.describe_error(error)}")
        return without_secret(error, secrets) or problem
    try:
        return replace(
            inspect_tasks(environment),
            **{name: defaults.get(name) for name in SIZES},
            details=describe_if_possible(found, environment),
        )
    except Exception as error:
        traceback.print_exc()
        problem = EnvironmentInspection(problem=f"Reading its tasks failed: {packages.describe_error(error)}")
        return without_secret(error, secrets) or problem


def describe_if_possible(found: EnvironmentLocation, environment: EnvironmentProtocol) -> VersionDetails:
    """An environment that can be played passes, even if it cannot be described."""
    details = describe_source(found)
    try:
        return describe_loading(details, environment)
    except Exception:
        traceback.print_exc()
        return details


def without_secret(error: BaseException, secrets: Sequence[str]) -> EnvironmentInspection | None:
    """The same as a sentence of its own, if the error names a secret that the environment declares."""
    messages = " ".join(str(each) for each in list_causes(error))
    for name in secrets:
        if re.search(rf"\b{re.escape(name)}\b", messages):
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
        task_list=list(take_listed(map(describe_task, environment.tasks()))),
    )


def take_listed(rows: Iterable[TaskInfo]) -> Iterator[TaskInfo]:
    """The first tasks, as many as a server lists."""
    left = LARGEST_TASKS - len("[]")
    for row in islice(rows, MOST_TASKS):
        left -= len(msgspec.json.encode(row)) + len(",")
        if left < 0:
            return
        yield row


def describe_task(task: Task) -> TaskInfo:
    if task.template:
        row = {"env": task.env, "template": task.template, "args": task.args, "columns": task.columns}
    else:
        row = {"prompt": "\n".join(map(text_of, task.prompt))[:LONGEST_PROMPT]}
    plain = msgspec.to_builtins({"slug": task.slug[:LONGEST_PROMPT], **row}, enc_hook=stable_repr)
    return msgspec.convert(plain, TaskInfo)


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
