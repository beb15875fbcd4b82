"""What every sandbox that serves an environment needs: a command, a token, variables.

Knows nothing of where the sandbox is.
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
"""By name; None stands for the value in this process."""


def fresh_token() -> str:
    return secrets.token_urlsafe(24)


def resolve_serve_command(command: Command | None, port: int) -> list[str]:
    """The command given, or else one that serves the environment of the working directory."""
    if command is None:
        return ["proctor", "serve", "--host", "0.0.0.0", "-p", str(port)]
    return split_command(command)


def split_command(command: Command) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else [str(word) for word in command]


def resolve_variables(variables: Variables) -> dict[str, str]:
    """The values of variables; None is replaced by the value in this process."""
    missing = [name for name, value in variables.items() if value is None and name not in os.environ]
    if missing:
        raise ConfigError(
            f"{', '.join(missing)} must be passed on, but is not set in this process; set it, or give a value"
        )
    return {name: os.environ[name] if value is None else str(value) for name, value in variables.items()}
