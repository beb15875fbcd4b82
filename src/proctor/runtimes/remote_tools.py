"""The tools and the workspace of a remote environment, used over the channel.

Knows nothing of what the tools do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.channel.client import Channel
from proctor.channel.frames import RemoteError
from proctor.channel.grades import decode_failure
from proctor.contracts import CommandResult, HttpEndpoint, Workspace
from proctor.errors import EnvError
from proctor.trace import Content, ToolSpec


class RemoteTools:
    """The tools of one rollout of a remote environment."""

    def __init__(self, channel: Channel, tools: Sequence[ToolSpec], workspace: Workspace | None) -> None:
        self.tools = tools
        self.workspace = workspace
        self._channel = channel

    @classmethod
    def of(cls, channel: Channel, started: Mapping[str, Any]) -> RemoteTools | None:
        """The tools that came with a started task, if any."""
        tools = msgspec.convert(started.get("tools") or (), tuple[ToolSpec, ...])
        workspace = RemoteWorkspace(channel) if started.get("workspace") else None
        return cls(channel, tools, workspace) if tools or workspace is not None else None

    async def call(self, name: str, arguments: str) -> Content:
        try:
            frame = await self._channel.ask("tools.call", {"name": name, "arguments": arguments})
        except RemoteError as error:
            raise decode_failure(error) from error
        content: Content = frame["content"]
        return content


class RemoteWorkspace:
    """The workspace of one rollout of a remote environment."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def run(
        self,
        command: str | Sequence[str],
        *,
        seconds: float,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        endpoint: HttpEndpoint | None = None,
        mounts: Sequence[str] = (),
    ) -> CommandResult:
        if endpoint is not None and not self._channel.url.startswith("unix:"):
            raise EnvError(
                f"a program in the workspace at {self._channel.url} cannot reach the model; "
                "run the environment in this process or with --runtime local, or use another agent"
            )
        params = {
            "command": command if isinstance(command, str) else list(command),
            "seconds": seconds,
            "stdin": stdin,
            "variables": dict(variables or {}),
            "door": None
            if endpoint is None
            else [endpoint.url, endpoint.key, endpoint.socket, endpoint.model],
            "mounts": list(mounts),
        }
        try:
            return msgspec.convert(await self._channel.ask("workspace.run", params), CommandResult)
        except RemoteError as error:
            raise decode_failure(error) from error
