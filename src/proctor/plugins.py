"""Find a model, environment or other variant by its name, through entry points.

The built-in variants are registered the same way as anybody's. Knows nothing of what they do.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from proctor.errors import ConfigError, UnknownNameError
from proctor.errors import did_you_mean as did_you_mean

MODELS = "proctor.models"
ENVIRONMENTS = "proctor.environments"
LISTENERS = "proctor.listeners"
AGENTS = "proctor.agents"


def names(group: str) -> list[str]:
    return sorted({point.name for point in entry_points(group=group)})


def find(group: str, name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=group, name=name)), None)


def load(group: str, name: str) -> Any:
    """The object registered under a name, imported now."""
    point = find(group, name)
    if point is None:
        raise UnknownNameError(f"No {kind(group)} is called {name!r}{did_you_mean(name, names(group))}")
    try:
        return point.load()
    except ImportError as error:
        raise ConfigError(f"{kind(group)} {name!r} ({point.value}) cannot be imported: {error}") from error


def kind(group: str) -> str:
    return group.rpartition(".")[2].removesuffix("s")
