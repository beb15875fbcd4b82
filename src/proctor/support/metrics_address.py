"""Where metrics are answered: light to import, since every command reads settings.

Knows nothing of HTTP.
"""

from __future__ import annotations

import msgspec

from proctor.errors import ConfigError


class MetricsAddress(msgspec.Struct, frozen=True):
    """Where metrics are answered."""

    port: int
    host: str = "127.0.0.1"


def parse_metrics_address(text: str) -> MetricsAddress:
    """`9464`, `0.0.0.0:9464` or `[::]:9464`; without a host, this machine alone can ask."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"--metrics takes PORT or HOST:PORT, such as 127.0.0.1:9464, not {text!r}.")
    return MetricsAddress(int(port), host.strip("[]") or "127.0.0.1")
