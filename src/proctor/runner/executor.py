"""Where a host plays the runs that it claims: on its own machine, or on others. One contract for both."""

from __future__ import annotations

import asyncio
from typing import Protocol

from proctor.api.runner import RunAssignment
from proctor.runner.attempt import HostAttempt, HostResources


class Executor(Protocol):
    """Plays attempts for a host."""

    delegates: bool
    """Attempts are played by another machine, which needs a token to stand in for the host."""
    outlives_host: bool
    """Attempts continue when the host ends, and are found again by the next."""

    def has_room(self, playing: int) -> bool:
        """Whether one more attempt can be played now, beside this many."""
        ...

    async def play(self, assignment: RunAssignment) -> None:
        """Play one attempt until it is over and the server knows. Cancelled when the host ends."""
        ...

    async def run(self) -> None:
        """What has to happen beside the attempts, until cancelled. Raises if nothing can be played at all."""
        ...


class LocalExecutor:
    """Plays attempts on this machine."""

    delegates = False
    outlives_host = False

    def __init__(self, resources: HostResources) -> None:
        self.resources = resources

    def has_room(self, playing: int) -> bool:
        return playing < self.resources.settings.at_once

    async def play(self, assignment: RunAssignment) -> None:
        await HostAttempt(self.resources, assignment).play()

    async def run(self) -> None:
        await asyncio.Event().wait()
