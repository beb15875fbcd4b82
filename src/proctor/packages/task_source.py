"""Everything that can be started by hand at a path or name: templates, and the tasks made from them.

A source is a Python file, `file.py:name`, a folder, a file of task rows, or the name of an environment. Knows
nothing of terminals or servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import ConfigError, UnknownNameError, did_you_mean
from proctor.packages import loading as packages
from proctor.packages import task_files
from proctor.packages.serve_target import environment_at, environments_at, module_at
from proctor.task import Task, mint_task


class TaskSource(msgspec.Struct, frozen=True):
    """Environments with templates by name, and tasks."""

    environments: dict[str, Any]
    tasks: list[Task] = []

    def find_task(self, word: str, args: Mapping[str, Any]) -> Task:
        """The task with a slug, or one that is made now from a template and its inputs."""
        known = next((task for task in self.tasks if task.slug == word), None)
        if known is not None and not args:
            return known
        owners = [each for each in self.environments.values() if word in each.templates]
        if len(owners) == 1:
            return mint_task(owners[0].name, word, dict(args))
        if owners:
            names = ", ".join(repr(each.name) for each in owners)
            raise ConfigError(f"{names} each have a template {word!r}; name one as FILE.py:VARIABLE.")
        if known is not None:
            raise ConfigError(f"Task {word!r} has inputs of its own; leave out --args.")
        templates = [name for each in self.environments.values() for name in each.templates]
        near = did_you_mean(word, [*templates, *(task.slug for task in self.tasks)])
        names = ", ".join(map(repr, self.environments))
        raise UnknownNameError(f"{names} has no template and no task {word!r}{near}")

    def environment_of(self, task: Task) -> Any:
        return self.environments[task.env]


def open_task_source(source: str) -> TaskSource:
    """Import what is there."""
    file, colon, attribute = source.rpartition(":")
    if colon and file and attribute.isidentifier():
        return of_environment(environment_at(source))
    path = Path(source).expanduser()
    if path.is_dir():
        return open_folder(path)
    if task_files.is_data(path):
        return of_batch(task_files.read_tasks(path))
    if path.is_file() or path.suffix == ".py":
        environments = environments_at(path)
        return need_some(environments, task_files.tasks_in(module_at(source)), source)
    environment = environment_at(source)
    batch = packages.load_tasks(packages.find_environment(source))
    return of_environment(environment) if batch is None else of_batch(batch)


def open_location(found: packages.EnvironmentLocation) -> TaskSource:
    """The tasks of an environment that was found or fetched."""
    batch = packages.load_tasks(found)
    if batch is None:
        raise ConfigError(f"{found.env_id} has no templates; only tasks made from templates can be started.")
    return of_batch(batch)


def open_folder(folder: Path) -> TaskSource:
    environments = environments_at(folder)
    has_tasks = any((folder / name).is_file() for name in task_files.FIRST_CHOICE)
    if not has_tasks:
        return need_some(environments, [], str(folder))
    batch = task_files.read_tasks(folder)
    return of_batch(msgspec.structs.replace(batch, environments={**environments, **batch.environments}))


def of_environment(environment: Any) -> TaskSource:
    return TaskSource({environment.name: environment})


def of_batch(batch: task_files.Batch) -> TaskSource:
    members = task_files.members_of(batch, packages.load_by_name)
    every: dict[str, Any] = {**batch.environments, **members}
    return TaskSource({name: each for name, each in every.items() if each.templates}, batch.tasks)


def need_some(environments: dict[str, Any], tasks: list[Task], source: str) -> TaskSource:
    if not environments:
        raise ConfigError(
            f"{source!r} defines no environment with templates; write env = Environment(…), @env.template()."
        )
    return TaskSource(environments, tasks)
