"""Whether Ray is installed. It is found, not imported: only the driver's process imports it."""

from __future__ import annotations

import importlib.util

from proctor.errors import ConfigError


def need_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("Ray is not installed here; install it with `pip install 'proctor[ray]'`.")
