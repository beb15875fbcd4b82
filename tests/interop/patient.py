"""An agent that asks its model at once for the first few rollouts, and for the others when it is allowed to.

A file `thinking` says how many wait; a file `go` allows them to go on.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from proctor.contracts import Desk

PAUSE_SECONDS = 0.02


class Patient:
    """Waits in the middle of a rollout, for as long as a test needs."""

    name = "patient"

    def __init__(self, at_once: int = 0) -> None:
        self._at_once = at_once
        self._waiting = 0

    async def __call__(self, desk: Desk) -> str:
        self._at_once -= 1
        if self._at_once < 0:
            self._waiting += 1
            Path("thinking").write_text(str(self._waiting))
            while not Path("go").exists():
                await asyncio.sleep(PAUSE_SECONDS)
        return str((await desk.ask()).message["content"])
