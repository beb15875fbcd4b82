"""What somebody else's environment lends: the tools of its MCP servers, reached through the channel.

Peers of our own lend by the channel itself (`lent.py`). Knows nothing of what the tools do.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, nullcontext

from proctor.channel.client import Binding, Channel
from proctor.channel.tunnel import Tunnel
from proctor.contracts import Toolbox
from proctor.env.mcp import Connection, McpServer, close_all, offered, require_mcp
from proctor.env.performance import FunctionTools
from proctor.env.threads import Threads

MCP = "mcp"


async def borrowed(channel: Channel, closing: AsyncExitStack) -> Toolbox | None:
    """Everything we know how to use of what a session was offered; given back when `closing` ends."""
    servers = [binding for binding in channel.greeting.bindings if kind_of(binding) == MCP]
    if not servers:
        return None
    require_mcp()
    connections = [Connection(await reached(channel, binding, closing)) for binding in servers]
    closing.push_async_callback(close_all, connections)
    for connection in connections:
        await connection.wait_for_start()
    return FunctionTools(offered(connections, {}), Threads(), None, nullcontext)


def kind_of(binding: Binding) -> str:
    return binding.protocol.partition("/")[0]


async def reached(channel: Channel, binding: Binding, closing: AsyncExitStack) -> McpServer:
    tunnel = Tunnel(channel, binding)
    url = await tunnel.open()
    closing.push_async_callback(tunnel.close)
    token = binding.params.get("auth_token")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return McpServer(name=binding.name, url=url, headers=headers)
