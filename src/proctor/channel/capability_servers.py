"""What an environment lends to clients that know no other way to it: servers of their own behind the channel.

Its tools are an MCP server, its workspaces an ssh server; a session finds its own by its name. Both are
started when the first such client says hello. Knows nothing of connections.
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
"""The capability under which others find the tools."""
SSH = "ssh/2"
ADDRESS = "127.0.0.1"

FindTemplateRollout = Callable[[str], TemplateRollout | None]
"""What a session is playing, if it has started a task."""


class CapabilityServers:
    """The servers behind one served environment."""

    def __init__(self, environment: Environment, playing: FindTemplateRollout) -> None:
        self._environment = environment
        self._playing = playing
        self._by_ssh = bool(environment.workspaces) and importlib.util.find_spec("asyncssh") is not None
        self._mcp = McpToolServer(self._toolbox, self._left_out)
        self._ssh: SshServer | None = None
        self._guests: dict[str, list[dict[str, Any]]] = {}
        """The ssh bindings of a session: the same whenever it says hello."""

    @property
    def is_open(self) -> bool:
        """Whether everything that is lent is there."""
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
        """Where a capability's own server listens; None if there is no such capability."""
        if capability == TOOLS and self._lends_tools:
            return ADDRESS, await self._mcp.start()
        if self._by_ssh and any(capability == spec.name for spec in self._environment.workspaces):
            await self.open()
            assert self._ssh is not None
            return ADDRESS, self._ssh.port
        return None

    def forget(self, session: str) -> None:
        """Let nobody in by the name of a session that is over."""
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

    def _left_out(self) -> Collection[str]:
        """Whoever has a shell by ssh brings tools of its own for it."""
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
                self._binding(self._ssh, session, place) for place in range(len(self._environment.workspaces))
            ]
        return known

    def _binding(self, ssh: SshServer, session: str, place: int) -> dict[str, Any]:
        """The folder comes with the task; the way to it is told before."""
        spec = self._environment.workspaces[place]

        def folder() -> Any:
            playing = self._playing(session)
            return None if playing is None else playing.folders[spec]

        return {"name": spec.name, "protocol": SSH, "url": ssh.url, "params": ssh.add(folder, spec)}
