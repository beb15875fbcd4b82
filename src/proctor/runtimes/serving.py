"""What all places that are started for a rollout share: the command that serves, its token, its variables.

Knows nothing of where the place is.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Mapping, Sequence

from proctor.errors import ConfigError

PORT = 8765
TOKEN_VARIABLE = "PROCTOR_SERVE_TOKEN"

Command = str | Sequence[str]
Variables = Mapping[str, str | None]
"""By name; None stands for the value that this process has."""


def fresh_token() -> str:
    return secrets.token_urlsafe(24)


def serve_command(port: int) -> list[str]:
    """Serves the environment of the working directory."""
    return ["proctor", "serve", "--host", "0.0.0.0", "-p", str(port)]


def split_command(command: Command) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else [str(word) for word in command]


def resolve_variables(variables: Variables) -> dict[str, str]:
    """The values of variables, those that are taken from this process included."""
    missing = [name for name, value in variables.items() if value is None and name not in os.environ]
    if missing:
        raise ConfigError(f"{', '.join(missing)} should be passed on and is not set; set it, or give a value")
    return {name: os.environ[name] if value is None else str(value) for name, value in variables.items()}
