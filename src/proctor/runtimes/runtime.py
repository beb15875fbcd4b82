"""Runtime: where a served environment is reached. A provider makes one for each rollout.

    @asynccontextmanager
    async def mine(task: Task) -> AsyncIterator[Runtime]:
        machine = await start(task)
        try:
            yield Runtime(f"tcp://{machine.address}:8765")
        finally:
            await machine.stop()

A provider may also have `async check()`, which raises before anything is paid for if no rollout can succeed,
and `async close()`, which releases what all rollouts shared. Knows nothing of what is said there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from proctor.channel.client import connect
from proctor.task import Task

Provider = Callable[[Task], AbstractAsyncContextManager["Runtime"]]
"""Makes a place for one rollout of a task; InfraError where that fails, and may work next time."""


class Runtime:
    """An environment that somebody serves: `tcp://host:port`, or `unix:///path/of/a/socket`.

    It is a provider too, one that starts nothing: every rollout goes to the same place.
    """

    def __init__(self, url: str, *, token: str | None = None, lasts: bool = False) -> None:
        self.url = url
        self.token = token
        self.lasts = lasts
        """The place outlives a rollout, so connections to it may be kept for the next one."""

    def __call__(self, task: Task) -> AbstractAsyncContextManager[Runtime]:  # noqa: ARG002
        self.lasts = True  # whoever uses it as a provider started it beforehand
        return nullcontext(self)

    async def check(self) -> None:
        """Raise before anything is paid for if nobody serves there."""
        channel = await connect(self.url, self.token)
        await channel.close()

    def __repr__(self) -> str:  # without the token, which would end up in logs
        return f"Runtime({self.url!r})"
