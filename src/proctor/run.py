"""Run: one evaluation of one environment, as data.

Knows nothing of engines or files.
"""

from __future__ import annotations

import secrets
from typing import Literal

import msgspec

RunStatus = Literal["pending", "running", "stopping", "finished", "failed", "stopped", "timed_out"]
"""The one list of states: of runs here and on a server, in the API, on the command line, in the dashboard."""
EndedStatus = Literal["finished", "failed", "stopped", "timed_out"]
ENDED: frozenset[RunStatus] = frozenset({"finished", "failed", "stopped", "timed_out"})
ACTIVE: frozenset[RunStatus] = frozenset({"running", "stopping"})


def ended_status(status: str | None) -> EndedStatus:
    """How a run ended; one that does not say so was stopped."""
    return status if status in ENDED else "stopped"  # type: ignore[return-value]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What is being evaluated, and its status."""

    id: str
    env_id: str
    model: str
    label: str = ""
    """What a sweep chose for it."""
    suite: str = ""
    """The id that runs share which were started together; empty for one that was started alone."""
    status: RunStatus = "pending"
    started_at: float = 0.0
    ended_at: float | None = None
    note: str = ""
    """Why it failed or was stopped."""


def new_run_id() -> str:
    return secrets.token_hex(4)
