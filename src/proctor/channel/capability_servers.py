"""Servers behind the channel, for clients that do not speak our additions: tools by MCP, workspaces by ssh.

A session is identified by its name. Both servers start with the first such client's hello. Knows nothing of
connections.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from proctor.channel.mcp_server import PROTOCOL, McpToolServer
from proctor.contracts import Toolbox
from proctor.env.template_rollout import TemplateRollout
from proctor.env.templates import Environment

if TYPE_CHECKING:
    from proctor.workspaces.ssh_server import SshServer

TOOLS = "tools"
"""The capability that offers the tools."""
SSH = "ssh/2"
ADDRESS = "127.0.0.1"

FindTemplateRollout = Callable[[str], TemplateRollout | None]
"""The rollout of a session, if it has started a task."""


class CapabilityServers:
    """The servers of one served environment."""

    def __init__(self, environment: Environment, playing: FindTemplateRollout) -> None:
        self._environment = environment
        self._playing = playing
        self._by_ssh = bool(environment.workspaces) and importlib.util.find_spec("asyncssh") is not None
        self._mcp = McpToolServer(self._toolbox, self._excluded_tools)
        self._ssh: SshServer | None = None
        self._guests: dict[str, list[dict[str, Any]]] = {}
        """The ssh bindings of each session: the same at every hello."""

    @property
    def is_open(self) -> bool:
        """Whether all servers run."""
        return (not self._lends_tools or self._mcp.port != 0) and (not self._by_ssh or self._ssh is not None)

    async def open(self) -> None:
        if self._lends_tools:
            await self._mcp.start()
        if self._by_ssh and self._ssh is None:
            from proctor.workspaces.ssh_server import SshServer

            server = SshServer()
            await server.start()
            self._ssh = server

    def bindings(self, session: str) -> list[dict[str, Any]]:
        bindings = []
        if self._lends_tools:
            url = f"http://{ADDRESS}:{self._mcp.port}/mcp/{session}"
            params = {"transport": "streamable-http"}
            bindings.append({"name": TOOLS, "protocol": PROTOCOL, "url": url, "params": params})
        return [*bindings, *self._workspaces(session)]

    async def address_of(self, capability: str) -> tuple[str, int] | None:
        """The address of a capability's server; None if there is no such capability."""
        if capability == TOOLS and self._lends_tools:
            return ADDRESS, await self._mcp.start()
        if self._by_ssh and any(capability == spec.name for spec in self._environment.workspaces):
            await self.open()
            assert self._ssh is not None
            return ADDRESS, self._ssh.port
        return None

    def forget(self, session: str) -> None:
        """Revoke access under the name of a session that is over."""
        for binding in self._guests.pop(session, ()):
            assert self._ssh is not None
            self._ssh.remove(binding["params"]["user"])

    async def close(self) -> None:
        await self._mcp.close()
        if self._ssh is not None:
            await self._ssh.close()

    # Tools

    @property
    def _lends_tools(self) -> bool:
        environment = self._environment
        return environment.lends_tools or (not self._by_ssh and bool(environment.workspace_tools))

    def _excluded_tools(self) -> Collection[str]:
        """A client with an ssh shell brings its own tools for it."""
        return self._environment.workspace_tools if self._by_ssh else ()

    def _toolbox(self, session: str) -> Toolbox | None:
        playing = self._playing(session)
        return None if playing is None else playing.toolbox

    # Workspaces

    def _workspaces(self, session: str) -> list[dict[str, Any]]:
        if self._ssh is None:
            return []
        known = self._guests.get(session)
        if known is None:
            known = self._guests[session] = [
                self._binding(self._ssh, session, index) for index in range(len(self._environment.workspaces))
            ]
        return known

    def _binding(self, ssh: SshServer, session: str, index: int) -> dict[str, Any]:
        """The binding is sent before the task starts; its folder exists only after."""
        spec = self._environment.workspaces[index]

        def folder() -> Any:
            playing = self._playing(session)
            return None if playing is None else playing.folders[spec]

        return {"name": spec.name, "protocol": SSH, "url": ssh.url, "params": ssh.add(folder, spec)}
