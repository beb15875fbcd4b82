"""Find a model, environment or other variant by its name, through entry points.

The built-in variants are registered the same way as yours. Knows nothing of what they do.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any

from proctor.errors import ConfigError, UnknownNameError
from proctor.errors import did_you_mean as did_you_mean

MODELS = "proctor.models"
ENVIRONMENTS = "proctor.environments"
LISTENERS = "proctor.listeners"
AGENTS = "proctor.agents"
RUNTIMES = "proctor.runtimes"
DIALECTS = "proctor.dialects"
RUNNERS = "proctor.runners"
"""What runs a single task; a part below evaluations finds it here."""
UNLISTED = frozenset({"workflow"})
"""Environments that only recipes name."""


def list_names(group: str) -> list[str]:
    return sorted({point.name for point in list_entry_points(group)})


def list_environments() -> list[str]:
    """The registered environments that people may name."""
    return [name for name in list_names(ENVIRONMENTS) if name not in UNLISTED]


def find_entry_point(group: str, name: str) -> EntryPoint | None:
    return next(iter(list_entry_points(group).select(name=name)), None)


def list_entry_points(group: str) -> EntryPoints:
    """Read once, because that opens a file of every installed package; again when a package comes or goes."""
    return _list_entry_points(group, tuple((folder, modified_at(folder)) for folder in sys.path))


@lru_cache(maxsize=16)
def _list_entry_points(group: str, installed: tuple[tuple[str, int], ...]) -> EntryPoints:  # noqa: ARG001
    return entry_points(group=group)


def modified_at(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


def load(group: str, name: str) -> Any:
    """The object registered under a name, imported now."""
    point = find_entry_point(group, name)
    if point is None:
        raise UnknownNameError(
            f"No {describe_group(group)} is called {name!r}{did_you_mean(name, list_names(group))}"
        )
    try:
        return point.load()
    except ImportError as error:
        raise ConfigError(
            f"{describe_group(group)} {name!r} ({point.value}) cannot be imported: {error}"
        ) from error


def describe_group(group: str) -> str:
    return group.rpartition(".")[2].removesuffix("s")
