"""Check that the variables an environment reads are set."""

from __future__ import annotations

import os
from collections.abc import Sequence

from proctor.errors import ConfigError


class MissingKeyError(ConfigError):
    """Environment variables that must be set are not."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = list(keys)
        super().__init__(f"Not set: {', '.join(keys)}. Export them before the run, or give them as secrets.")


def ensure_keys(keys: Sequence[str]) -> None:
    """Raise MissingKeyError, naming every variable that is not set."""
    missing = [key for key in keys if not os.environ.get(key)]
    if missing:
        raise MissingKeyError(missing)
