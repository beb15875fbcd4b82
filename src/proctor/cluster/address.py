"""How a cluster is named: `ray` is the one that this machine belongs to, `ray://HOST[:PORT]` the one whose
head is there.

The port is that of the cluster's control store (6379 unless it was started with another), not that of Ray
Client. Knows nothing of connections.
"""

from __future__ import annotations

import re

import msgspec

from proctor.errors import ConfigError

RAY = "ray"
PORT = 6379
HOST_AND_PORT = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+)(?::(?P<port>\d{1,5}))?")


class ClusterAddress(msgspec.Struct, frozen=True):
    """Where a cluster's head answers; empty for the cluster that this machine is a node of."""

    host: str = ""
    port: int = PORT

    def __str__(self) -> str:
        return f"{RAY}://{self.host}:{self.port}" if self.host else RAY


def parse_address(text: str) -> ClusterAddress:
    scheme, separator, rest = text.partition("://")
    if scheme == RAY and not separator:
        return ClusterAddress()
    match = HOST_AND_PORT.fullmatch(rest)
    port = PORT if match is None or match["port"] is None else int(match["port"])
    if scheme != RAY or match is None or not 0 < port < 2**16:
        raise ConfigError(f"{text!r} names no cluster; give here, {RAY} or {RAY}://HOST:PORT.")
    return ClusterAddress(match["host"].strip("[]"), port)
