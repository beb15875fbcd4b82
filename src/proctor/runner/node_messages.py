"""What a runner gives to the process that plays an attempt on a node, and what that answers first."""

from __future__ import annotations

import platform

import msgspec

from proctor import __version__
from proctor.api.runner import RunAssignment
from proctor.isolation.limits import RunLimits


class NodeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One line on standard input: tokens and secrets of one attempt, and none of the runner's."""

    url: str
    """The server, as nodes reach it."""
    node_name: str
    data: str
    limits: RunLimits = RunLimits()
    allow_no_sandbox: bool = False
    allow_no_control_groups: bool = False
    direct_hosts: tuple[str, ...] = ()
    assignment: RunAssignment | None = None
    """None to check the node alone."""


class NodeGreeting(msgspec.Struct, frozen=True, kw_only=True):
    """What a node has, and why it cannot play runs."""

    proctor: str = __version__
    python: str = platform.python_version()
    problems: tuple[str, ...] = ()
    """Sentences; empty if it can."""
