"""What a host reads from its standard input when it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from proctor.client.contexts import Context
from proctor.isolation.limits import RunLimits


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

    @property
    def work(self) -> Path:
        return self.data / "work"


class HostStartup(msgspec.Struct, frozen=True, kw_only=True):
    context: Context
    settings: HostSettings
    host_key: str = ""
    """Identifies this host to the server; empty to use the key in its data folder."""
    parent: int | None = None
    """The process that the host ends with. Passed in, because it may be dead before the host can look."""


def encode_host_startup(startup: HostStartup) -> bytes:
    return msgspec.json.encode(startup, enc_hook=str)


def decode_host_startup(content: bytes) -> HostStartup:
    return msgspec.json.decode(content, type=HostStartup, dec_hook=convert_value)


def convert_value(kind: type, value: Any) -> Any:
    return kind(value)
