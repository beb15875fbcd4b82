"""What a host has to know, as it is told on its standard input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from proctor.client.contexts import Context
from proctor.isolation.limits import RunLimits


class HostSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How runs are played on this machine."""

    data: Path
    """Folder of virtual environments and of the runs' own folders."""
    at_once: int = 2
    limits: RunLimits = RunLimits()
    allow_no_sandbox: bool = False
    direct_hosts: tuple[str, ...] = ()
    """Hosts from which wheels may be taken that a package names by their address."""
    hidden: tuple[Path, ...] = ()
    """What no run may see: the server's data, if it is on this machine."""

    @property
    def work(self) -> Path:
        return self.data / "work"


class HostStartup(msgspec.Struct, frozen=True, kw_only=True):
    context: Context
    settings: HostSettings
    host_key: str = ""
    """By which the server knows this host; empty: the one in the folder of its data."""
    parent: int | None = None
    """The process whose end is the host's. Told, since it may be dead before the host can look."""


def encode_host_startup(startup: HostStartup) -> bytes:
    return msgspec.json.encode(startup, enc_hook=str)


def decode_host_startup(content: bytes) -> HostStartup:
    return msgspec.json.decode(content, type=HostStartup, dec_hook=convert_value)


def convert_value(kind: type, value: Any) -> Any:
    return kind(value)
