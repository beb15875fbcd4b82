"""Capability: a server through which an environment offers the agent something, by its address.

Only MCP servers can be lent to an agent; a shell comes with `env.workspace()`. Knows nothing of rollouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proctor.env.mcp import McpServer
from proctor.errors import ConfigError

MCP = "mcp"
MCP_PROTOCOL = "mcp/2025-11-25"


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """Something an environment offers: its name, its protocol and its address."""

    name: str
    protocol: str
    url: str
    params: Mapping[str, Any] = {}

    @classmethod
    def mcp(cls, *, name: str = "tools", url: str, auth_token: str | None = None) -> Capability:
        """An MCP server at a streamable HTTP address."""
        params = {} if auth_token is None else {"auth_token": auth_token}
        return cls(name=name, protocol=MCP_PROTOCOL, url=url, params=params)


def server_of(capability: Capability) -> McpServer:
    """The MCP server that a capability is."""
    if capability.protocol.partition("/")[0] != MCP:
        raise ConfigError(
            f"Capability {capability.name!r} speaks {capability.protocol}; only MCP servers can be added. A "
            f"shell comes with env.workspace()."
        )
    token = capability.params.get("auth_token")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return McpServer(name=capability.name, url=capability.url, headers=headers)
