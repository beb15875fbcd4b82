"""The Inspect dialect: which files it claims, which of their tasks is meant, and how that is loaded.

Reads source; runs nothing in this process. Knows nothing of how rollouts are played.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.contracts import EnvironmentProtocol
from proctor.dialects.environment import ForeignEnvironment
from proctor.dialects.inspect import features
from proctor.dialects.isolated import Framework, find_python
from proctor.dialects.names import parse_file
from proctor.dialects.process import ChildCommand
from proctor.errors import ConfigError, did_you_mean
from proctor.packages.dialects import DialectFeature
from proctor.packages.loading import EnvironmentLocation, source_files

FRAMEWORK = Framework("inspect_ai", ("inspect_ai>=0.3.285,<0.4", "openai>=2"), ">=3.10")
"""Rollouts are samples that are added to a running evaluation, which earlier releases cannot do."""
DECORATOR = "task"
CHILD = Path(__file__).with_name("child.py")
VARIABLES = {"INSPECT_DISPLAY": "none", "INSPECT_LOG_LEVEL": "warning"}


class InspectDialect:
    """Files with `@task` functions that import `inspect_ai`."""

    title = "Inspect"

    def claims(self, found: EnvironmentLocation, files: Sequence[Path]) -> bool:  # noqa: ARG002
        return any(True for _ in find_tasks(files))

    def load(self, found: EnvironmentLocation, arguments: Mapping[str, Any]) -> EnvironmentProtocol:
        file, name = choose_task(found, [file for file in source_files(found) if file.suffix == ".py"])
        command = ChildCommand(
            name=found.env_id,
            python=find_python(found, FRAMEWORK),
            dialect_file=CHILD,
            params={"file": str(file), "task": name, "arguments": dict(arguments)},
            folder=file.parent,
            variables=VARIABLES,
        )
        return ForeignEnvironment(found.env_id, command)

    def describe(self, found: EnvironmentLocation, files: Sequence[Path]) -> Sequence[DialectFeature]:  # noqa: ARG002
        return features.describe(files)


def find_tasks(files: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """The functions with `@task`, and the file of each."""
    for file in files:
        for node in parse_file(file).body:
            if isinstance(node, ast.FunctionDef) and any(map(is_task_decorator, node.decorator_list)):
                yield file, node.name


def is_task_decorator(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return (isinstance(called, ast.Name) and called.id == DECORATOR) or (
        isinstance(called, ast.Attribute) and called.attr == DECORATOR
    )


def choose_task(found: EnvironmentLocation, files: Sequence[Path]) -> tuple[Path, str]:
    """The task that is meant: the only one, or the one named behind the @."""
    tasks = list(find_tasks(files))
    names = [name for _, name in tasks]
    if found.member:
        chosen = [each for each in tasks if each[1] == found.member]
        if not chosen:
            raise ConfigError(
                f"{found.env_id} has no task {found.member!r}{did_you_mean(found.member, names)}"
            )
    else:
        chosen = tasks
    if len(chosen) > 1:
        listed = ", ".join(f"{file.name}@{name}" for file, name in chosen)
        raise ConfigError(f"{found.env_id} has several tasks; name one of them: {listed}.")
    return chosen[0]


DIALECT = InspectDialect()
