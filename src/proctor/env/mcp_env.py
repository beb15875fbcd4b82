"""Environments whose tools come from MCP servers. Knows nothing of what the tools do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, cast

from proctor.env.dataset import RowSource
from proctor.env.mcp import (
    McpConnection,
    McpConnections,
    McpServer,
    require_mcp,
    tools_by_name,
    validate_servers,
)
from proctor.env.multi_turn import MultiTurnSession
from proctor.env.state import State
from proctor.env.tool_env import ToolEnv
from proctor.task import Task
from proctor.tools import Tool


class McpState(State):
    """State with the tools offered to its rollout."""

    __slots__ = ("tools",)

    tools: Mapping[str, Tool]


class McpEnv(ToolEnv):
    """The model is offered every tool of every server, besides `tools`."""

    def __init__(
        self,
        dataset: RowSource | None = None,
        *,
        servers: Sequence[McpServer | Mapping[str, Any]],
        per_rollout: bool = True,
        **settings: Any,
    ) -> None:
        require_mcp()
        super().__init__(dataset, **settings)
        self.per_rollout = per_rollout
        """Connect for each rollout, starting its own programs; `capacity` bounds how many run. False shares
        one connection, for servers that only read."""
        self._connections = McpConnections()
        self.set_servers(servers)

    def set_servers(self, servers: Sequence[McpServer | Mapping[str, Any]]) -> None:
        self.servers = validate_servers(servers)

    def tools_of(self, state: State) -> Mapping[str, Tool]:
        return cast(McpState, state).tools

    def open(self, task: Task) -> McpSession:
        return McpSession(self, McpState(super().open(task).state))

    async def connect(self, closing: AsyncExitStack) -> list[McpConnection]:
        """Connections to all servers; those of this rollout alone close with it."""
        own, shared = (self.servers, ()) if self.per_rollout else ((), self.servers)
        return await self._connections.open(own, shared, closing)

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            await self._connections.close()


class McpSession(MultiTurnSession):
    """One rollout of an McpEnv."""

    env: McpEnv
    state: McpState

    async def __aenter__(self) -> McpSession:
        async with AsyncExitStack() as closing:
            connections = await self.env.connect(closing)
            self.state.tools = tools_by_name(connections, self.env.tools)
            await super().__aenter__()
            self.closing = closing.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self.closing:
            await super().__aexit__(kind, error, trace)
