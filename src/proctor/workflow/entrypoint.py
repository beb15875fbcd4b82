"""Import a rollout's entrypoint, and find what it offers: two classes, or a server that it starts.

Knows nothing of how they are played.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from proctor.errors import ConfigError
from proctor.packages.modules import import_file
from proctor.workflow.authoring import AgentWorkflow, Grader

MAIN = "__main__"


class AuthoredClasses(msgspec.Struct, frozen=True):
    """The two classes of an entrypoint."""

    workflow: type[AgentWorkflow[Any]]
    grader: type[Grader[Any]]


def import_entrypoint(folder: Path, entrypoint: str) -> AuthoredClasses | None:
    """The classes of an entrypoint; None if it is a script that starts a server."""
    file = folder / entrypoint
    if not file.is_file():
        raise ConfigError(f"There is no entrypoint {entrypoint!r} in {folder}.")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    module = import_file(file, module_name(folder, file))
    workflows, graders = find_classes(module, AgentWorkflow), find_classes(module, Grader)
    if not workflows and not graders and has_main_guard(file):
        return None
    return AuthoredClasses(
        choose_class(workflows, file, "AgentWorkflow"), choose_class(graders, file, "Grader")
    )


def module_name(folder: Path, file: Path) -> str:
    """A name of its own, because many rollouts have a main.py."""
    return re.sub(r"\W", "_", f"rollout_{folder.name}_{file.stem}")


def find_classes(module: ModuleType, base: type) -> list[type]:
    """The classes of a kind in a module: its own or, if it has none, those that it imports."""
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, base)
        and value is not base
        and not inspect.isabstract(value)
    ]
    own = [each for each in found if each.__module__ == module.__name__]
    return list(dict.fromkeys(own or found))


def choose_class(found: list[type], file: Path, kind: str) -> Any:
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(sorted(each.__name__ for each in found))
        raise ConfigError(f"{file} has more than one {kind} ({names}); keep one in the entrypoint.")
    raise ConfigError(
        f"{file} has no {kind}: write a class that inherits from proctor.{kind}, or start a rollout server "
        f"under `if __name__ == '__main__':`."
    )


def has_main_guard(file: Path) -> bool:
    tree = ast.parse(file.read_bytes())
    return any(isinstance(node, ast.If) and MAIN in ast.dump(node.test) for node in tree.body)
