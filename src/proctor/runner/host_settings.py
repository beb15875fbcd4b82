"""What a host reads from its standard input when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.client.contexts import Context
from proctor.isolation.limits import RunLimits
from proctor.support.metrics_address import MetricsAddress
from proctor.support.structured_logs import LogFormat


class HostSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How this machine plays runs."""

    data: Path
    """Holds the virtual environments and the folders of the runs."""
    at_once: int = 2
    limits: RunLimits = RunLimits()
    allow_no_sandbox: bool = False
    direct_hosts: tuple[str, ...] = ()
    """Hosts from which wheels may be fetched by direct reference."""
    hidden: tuple[Path, ...] = ()
    """Paths that no run may see: the server's data, if it is on this machine."""
    metrics: MetricsAddress | None = None
    """Where to answer `GET /metrics`; None for nowhere."""
    log_format: LogFormat = "text"

    @property
    def work(self) -> Path:
        return self.data / "work"


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How runs are placed on a cluster."""

    address: str
    """`ray`, or `ray://HOST:PORT`."""
    url: str
    """The server, as the nodes reach it."""
    node_data: str = "~/.local/state/proctor-runner"
    """The folder on each node that holds its virtual environments and the folders of its runs."""
    cpus: float = 1.0
    gpus: float = 0.0
    resources: Mapping[str, float] = {}
    """What else a run takes from its node, by the names that the cluster's owner gave."""
    allow_no_control_groups: bool = False


class HostStartup(msgspec.Struct, frozen=True, kw_only=True):
    context: Context
    settings: HostSettings
    host_key: str = ""
    """Identifies this host to the server; empty to use the key in its data folder."""
    cluster: ClusterSettings | None = None
    """Play the runs on the nodes of a cluster instead of on this machine."""
    parent: int | None = None
    """The process that the host ends with. Passed in, because it may be dead before the host can look."""


def encode_host_startup(startup: HostStartup) -> bytes:
    return msgspec.json.encode(startup, enc_hook=str)


def decode_host_startup(content: bytes) -> HostStartup:
    return msgspec.json.decode(content, type=HostStartup, dec_hook=convert_value)


def convert_value(kind: type, value: Any) -> Any:
    return kind(value)
