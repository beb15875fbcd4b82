"""What one worker needs from its node, and what it takes along: the settings of `--on-args`.

Knows nothing of connections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from proctor.cluster.messages import Placement, Spread
from proctor.errors import ConfigError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30}
SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt]?i?)b?", re.IGNORECASE)
Amount = Annotated[float, msgspec.Meta(ge=0)]


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Per worker, and for all of them."""

    cpus: Amount = 1.0
    memory: int | str = 0
    """Bytes, or a size such as "2GB". Ray counts memory and enforces nothing."""
    gpus: Amount = 0.0
    resources: Mapping[str, Amount] = {}
    """Of names that the cluster's nodes were started with, such as `{"sandbox": 1}`."""
    placement: Spread = "spread"
    """Workers on as many nodes as there are, or on as few as hold them."""
    listen: str = ""
    """HOST[:PORT] where this machine waits for its workers; by default the address that the cluster knows."""
    files: Sequence[str] = ()
    """Files and folders that travel to the nodes in any case."""
    variables: Sequence[str] = ()
    """Environment variables that do."""
    room_seconds: Annotated[float, msgspec.Meta(gt=0)] = 6.0
    """How long the first worker waits for a node with room."""

    def to_placement(self) -> Placement:
        return Placement(
            cpus=self.cpus,
            memory=parse_size(self.memory),
            gpus=self.gpus,
            resources=self.resources,
            placement=self.placement,
        )

    def listen_at(self, otherwise: str) -> tuple[str, int]:
        if not self.listen:
            return otherwise, 0
        host, separator, port = self.listen.rpartition(":")
        return (host.strip("[]"), int(port)) if separator and port.isdecimal() else (self.listen, 0)


def parse_options(given: Mapping[str, Any]) -> WorkerOptions:
    try:
        options = msgspec.convert(given, WorkerOptions)
    except msgspec.ValidationError as error:
        names = ", ".join(WorkerOptions.__struct_fields__)
        raise ConfigError(f"{error}; the settings of a worker are {names}.") from error
    parse_size(options.memory)
    return options


def parse_size(size: int | str) -> int:
    """Bytes of a size such as 1000, "500MB" or "2GiB"."""
    match = SIZE.fullmatch(str(size).strip())
    if match is None or (unit := match["unit"].lower()) not in UNITS:
        raise ConfigError(f'memory is {size!r}; give bytes, or a size such as "2GB".')
    return int(float(match["number"]) * UNITS[unit])


def describe_need(placement: Placement) -> str:
    """What a worker needs, for people to read."""
    parts = [f"{placement.cpus:g} CPU" + ("" if placement.cpus == 1 else "s")]
    if placement.memory:
        parts.append(f"{placement.memory / 10**9:.3g} GB")
    if placement.gpus:
        parts.append(f"{placement.gpus:g} GPU" + ("" if placement.gpus == 1 else "s"))
    parts += [f"{amount:g} {name}" for name, amount in placement.resources.items()]
    return ", ".join(parts)


def needs(placement: Placement) -> dict[str, float]:
    """What a worker needs, by Ray's names."""
    wanted = {
        "CPU": placement.cpus,
        "memory": float(placement.memory),
        "GPU": placement.gpus,
        **placement.resources,
    }
    return {name: amount for name, amount in wanted.items() if amount}


def has_room(resources: Mapping[str, float], placement: Placement) -> bool:
    return all(resources.get(name, 0.0) >= amount for name, amount in needs(placement).items())
