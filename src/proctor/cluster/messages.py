"""What a program and its Ray driver process say to each other, one JSON object per line.

The program asks, the driver answers under the same number; several questions may be open at once. Knows
nothing of Ray.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Spread = Literal["spread", "pack"]


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """What a process needs from its node, and how several are distributed."""

    cpus: float = 1.0
    memory: int = 0
    """Bytes; Ray counts them and enforces nothing."""
    gpus: float = 0.0
    resources: Mapping[str, float] = {}
    """What the cluster's owner named, such as `{"sandbox": 1}`."""
    placement: Spread = "spread"
    node: str = ""
    """Only on the node with this id."""


class ClusterNode(msgspec.Struct, frozen=True, kw_only=True):
    """One machine of a cluster, as Ray describes it."""

    id: str
    host: str
    """Its address."""
    name: str
    is_alive: bool
    is_head: bool
    total: Mapping[str, float]
    """Resources by name; memory in bytes."""
    free: Mapping[str, float]


class Connected(msgspec.Struct, frozen=True, kw_only=True):
    """The driver's first words: which cluster it reached."""

    ray: str
    python: str
    host: str
    """The address of this machine, as the other nodes know it."""
    address: str
    """Where the cluster's control store answers."""


class StartedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process on a node, or why there is none."""

    node: str
    host: str
    pid: int
    hello: str = ""
    """The first line that it wrote to its parent."""
    code: int | None = None
    """Its exit code, if it ended before that."""
    last_words: str = ""


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a process on a node ended."""

    code: int
    last_words: str = ""


class NodeProbe(msgspec.Struct, frozen=True, kw_only=True):
    """What a node has that a worker needs."""

    python: str
    ray: str
    proctor: str = ""
    """Its version; empty if it is not installed."""
    cryptography: bool = False
    bubblewrap: str = ""
    """Its version; empty if it is missing or makes no sandbox."""
    route: str = ""
    """Why this machine cannot be reached from there; empty if it can."""


class DriverQuestion(msgspec.Struct, frozen=True):
    """To the driver."""

    id: int
    method: str
    arguments: Mapping[str, Any] = {}


class DriverAnswer(msgspec.Struct, frozen=True):
    """From the driver: a result, or an error with its kind."""

    id: int
    result: Any = None
    error: str = ""
    kind: str = ""
