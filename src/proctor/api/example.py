"""The example evaluation of a server."""

from __future__ import annotations

import msgspec


class ExampleState(msgspec.Struct, frozen=True, kw_only=True):
    """What the example evaluation would play, and whether it can be played here."""

    environment: str
    """owner/name: the caller's own copy."""
    model: str
    rollouts: int
    problem: str = ""
    """Why it cannot be played here, and who could change that; empty if it can."""
