"""What an environment served by another implementation lends: MCP tools and shells by ssh.

Tunnelled through the channel, so only its port must be reachable. Environments that Proctor serves lend over
the channel itself (`remote_tools.py`). Knows nothing of what the tools do.
"""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack, nullcontext

from proctor.channel.client import Binding, Channel
from proctor.channel.tunnel import Tunnel
from proctor.contracts import Toolbox, Workspace
from proctor.env.mcp import McpConnection, McpServer, close_all, require_mcp, tools_by_name
from proctor.env.template_rollout import FunctionTools
from proctor.support.threads import Threads
from proctor.tools import Tool
from proctor.workspaces.tools import bind_tools

log = logging.getLogger("proctor")

MCP, SSH = "mcp", "ssh"
COMMAND_SECONDS = 120.0
"""How long a command in a borrowed shell may take, unless the agent asks for more."""


async def borrow_toolbox(channel: Channel, closing: AsyncExitStack) -> Toolbox | None:
    """Every offered capability that we can use; released when `closing` ends."""
    bindings = channel.greeting.bindings
    for binding in bindings:
        if protocol_name(binding) not in (MCP, SSH):
            log.debug(
                "ignoring capability %s of %s: unknown protocol %s",
                binding.name,
                channel.url,
                binding.protocol,
            )
    workspace = await borrow_workspace(channel, bindings, closing)
    tools: dict[str, Tool] = {} if workspace is None else dict(bind_tools(workspace, COMMAND_SECONDS))
    servers = [binding for binding in bindings if protocol_name(binding) == MCP]
    if servers:
        require_mcp()
        connections = [McpConnection(await server_at(channel, binding, closing)) for binding in servers]
        closing.push_async_callback(close_all, connections)
        for connection in connections:
            await connection.wait_for_start()
        tools = tools_by_name(connections, tools)
    if not tools:
        return None
    return FunctionTools(tools, Threads(), workspace, nullcontext)


def protocol_name(binding: Binding) -> str:
    return binding.protocol.partition("/")[0]


async def borrow_workspace(
    channel: Channel, bindings: list[Binding], closing: AsyncExitStack
) -> Workspace | None:
    """The first shell offered, if any."""
    shells = [binding for binding in bindings if protocol_name(binding) == SSH]
    if not shells:
        return None
    from proctor.workspaces.ssh_client import SshWorkspace

    workspace = SshWorkspace(await open_tunnel(channel, shells[0], closing), shells[0].params)
    closing.push_async_callback(workspace.close)
    return workspace


async def server_at(channel: Channel, binding: Binding, closing: AsyncExitStack) -> McpServer:
    token = binding.params.get("auth_token")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return McpServer(name=binding.name, url=await open_tunnel(channel, binding, closing), headers=headers)


async def open_tunnel(channel: Channel, binding: Binding, closing: AsyncExitStack) -> str:
    """The local address of a capability."""
    tunnel = Tunnel(channel, binding)
    url = await tunnel.open()
    closing.push_async_callback(tunnel.close)
    return url
