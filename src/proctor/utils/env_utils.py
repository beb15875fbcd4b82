"""Load an environment by its name, from code."""

from __future__ import annotations

from typing import Any

from proctor.contracts import EnvironmentProtocol
from proctor.packages.loading import find_environment, load


def load_environment(env_id: str, **env_args: Any) -> EnvironmentProtocol:
    """The environment with that name: an installed package, a folder in ./environments, or a path."""
    return load(find_environment(env_id), env_args)
