"""Runtime: the address of a served environment. A provider creates one for each rollout.

    @asynccontextmanager
    async def mine(task: Task) -> AsyncIterator[Runtime]:
        machine = await start(task)
        try:
            yield Runtime(f"tcp://{machine.address}:8765")
        finally:
            await machine.stop()

A provider may also have `async check()`, which raises before the first model call if no rollout can succeed,
and `async close()`, which releases what all rollouts shared. Knows nothing of the channel's content.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager, nullcontext

from proctor.channel.client import connect
from proctor.optional_contracts import EnvironmentFacts
from proctor.task import Task

Provider = Callable[[Task], AbstractAsyncContextManager["Runtime"]]
"""Opens a runtime for one rollout of a task; InfraError where that fails but may work next time."""


class Runtime:
    """A served environment: `tcp://host:port`, or `unix:///path/of/a/socket`.

    Also a provider that starts nothing: every rollout uses the same address.
    """

    def __init__(self, url: str, *, token: str | None = None, lasts: bool = False) -> None:
        self.url = url
        self.token = token
        self.lasts = lasts
        """It outlives a rollout, so connections may be kept for the next one."""

    def __call__(self, task: Task) -> AbstractAsyncContextManager[Runtime]:  # noqa: ARG002
        self.lasts = True  # used as a provider, it was started beforehand
        return nullcontext(self)

    async def check(self) -> None:
        """Raise before the first model call if nothing is served there."""
        channel = await connect(self.url, self.token)
        await channel.close()

    @property
    def is_local(self) -> bool:
        """Whether what is served there can reach this machine's sockets."""
        return self.url.startswith("unix:")

    async def describe_environments(self, names: Collection[str]) -> EnvironmentFacts:  # noqa: ARG002
        """What the environment that is served there declares, as far as it says so."""
        channel = await connect(self.url, self.token)
        await channel.close()
        about, bindings = channel.greeting.env, channel.greeting.bindings
        capacity = about.get("capacity")
        return EnvironmentFacts(
            capacity if isinstance(capacity, int) and capacity > 0 else None,
            bool(about.get("workspaces")) or any(each.protocol.startswith("ssh") for each in bindings),
        )

    def __repr__(self) -> str:  # without the token, which would end up in logs
        return f"Runtime({self.url!r})"
