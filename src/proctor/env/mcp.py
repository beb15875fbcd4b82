"""MCP servers: programs to start or addresses to connect to, and the tools they offer.

A rollout gets connections of its own, because a server that remembers anything would carry it from one
rollout into the next; servers that only read may be shared. Knows nothing of environments, or of what the
tools do.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from proctor.env.tool_env import as_text
from proctor.errors import ConfigError, EnvError, InfraError
from proctor.tools import Tool, ToolError
from proctor.trace import ToolSpec

if TYPE_CHECKING:
    from mcp import Client, MCPError, types

START_SECONDS = 30.0
LONGEST_NAME = 64
KEPT_BYTES = 2000


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An MCP server: a program to start, or the address of a running one."""

    name: str
    command: str | None = None
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    """Variables for the program besides PATH, HOME and the like; no others are passed on."""
    cwd: str | None = None
    url: str | None = None
    """A streamable HTTP address."""
    headers: Mapping[str, str] = {}
    """Sent with every request to `url`."""
    start_seconds: float = START_SECONDS
    """How long the server may take to list its tools."""


class McpTool(Tool):
    """A tool whose server validates the arguments."""

    def arguments(self, raw: str | Mapping[str, Any]) -> dict[str, Any]:
        return dict(self._decode_arguments(raw) if isinstance(raw, str) else raw)


class McpConnections:
    """Connections to servers: a rollout's own close with it, shared ones when this is closed."""

    def __init__(self) -> None:
        self._shared: dict[str, McpConnection] = {}

    async def open(
        self, own: Iterable[McpServer], shared: Iterable[McpServer], closing: AsyncExitStack
    ) -> list[McpConnection]:
        """Started connections to all servers; `closing` closes the rollout's own."""
        connections = [McpConnection(server) for server in own]
        closing.push_async_callback(close_all, connections)
        connections = [*connections, *(self._share(server) for server in shared)]
        for connection in connections:
            await connection.wait_for_start()
        return connections

    def _share(self, server: McpServer) -> McpConnection:
        connection = self._shared.get(server.name)
        if connection is None or connection.is_over:
            connection = self._shared[server.name] = McpConnection(server)
        return connection

    async def close(self) -> None:
        shared, self._shared = list(self._shared.values()), {}
        await close_all(shared)


class McpConnection:
    """One server, held by an asyncio task: mcp insists that the task that opens also closes."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.tools: list[types.Tool] = []
        self._client: Client | None = None
        self._error: BaseException | None = None
        self._stderr_tail = ""
        self._started = asyncio.Event()
        self._ending = asyncio.Event()
        self._owner = asyncio.create_task(self._hold(), name=f"mcp server {server.name}")

    @property
    def is_over(self) -> bool:
        return self._ending.is_set() or self._owner.done()

    async def wait_for_start(self) -> None:
        await self._started.wait()
        if self._client is None:
            raise self._start_error() from self._error

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        from mcp import MCPError

        if self._client is None or self.is_over:
            await self.close()
            raise self._lost_error() from self._error
        try:
            result = await self._client.call_tool(tool, arguments)
        except MCPError as error:
            if not self._means_loss(error):
                raise ToolError(error.message) from error
            await self.close()
            self._error = self._error or error
            raise self._lost_error() from error
        if result.is_error:
            raise ToolError(text_of_result(result) or f"`{tool}` failed without a message.")
        return text_of_result(result)

    async def close(self) -> None:
        """Close the connection and the server it started. Continues in the background if cancelled."""
        if not (self._ending.is_set() or self._started.is_set()):
            self._owner.cancel()
        self._ending.set()
        if not self._owner.done():
            await asyncio.wait({self._owner})
        self._started.set()

    async def _hold(self) -> None:
        try:
            with tempfile.TemporaryFile("w+") as stderr:
                try:
                    await self._serve(stderr)
                finally:
                    self._stderr_tail = read_stderr_tail(stderr)
        except Exception as error:
            self._error = unwrap_error_group(error)
        finally:
            self._started.set()

    async def _serve(self, stderr: TextIO) -> None:
        async with AsyncExitStack() as closing:
            async with asyncio.timeout(self.server.start_seconds):
                client = await self._connect(closing, stderr)
                self.tools = await list_tools(client)
            self._client = client
            self._started.set()
            await self._ending.wait()

    async def _connect(self, closing: AsyncExitStack, stderr: TextIO) -> Client:
        """Use the handshake, which every server knows or refuses politely, and which over HTTP creates a
        session of our own; the newer probe makes some older servers exit."""
        from mcp import Client, MCPError
        from mcp.types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

        try:
            handshake = Client(await self._transport(closing, stderr), mode="legacy")
            return await closing.enter_async_context(handshake)
        except Exception as error:
            refusal = unwrap_error_group(error)
            unknown = (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION)
            if not (isinstance(refusal, MCPError) and refusal.code in unknown):
                raise
        probe = Client(await self._transport(closing, stderr), mode="auto")
        return await closing.enter_async_context(probe)

    async def _transport(self, closing: AsyncExitStack, stderr: TextIO) -> Any:
        server = self.server
        if server.url is None:
            from mcp import StdioServerParameters, stdio_client

            program = StdioServerParameters(
                command=server.command or "", args=list(server.args), env=dict(server.env), cwd=server.cwd
            )
            return stdio_client(program, errlog=stderr)
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        http = await closing.enter_async_context(create_mcp_http_client(headers=dict(server.headers)))
        http.event_hooks = {"response": [refuse_failure]}
        return streamable_http_client(server.url, http_client=http)

    def _start_error(self) -> EnvError:
        error, name = self._error, self.server.name
        if isinstance(error, TimeoutError):
            return InfraError(
                f"MCP server {name!r} did not start within {self.server.start_seconds:g} s{self._stderr_tail}"
            )
        if isinstance(error, (FileNotFoundError, PermissionError, NotADirectoryError)):
            what = error.filename or self.server.command
            return EnvError(f"MCP server {name!r} cannot be started: {error.strerror}: {what!r}")
        return InfraError(f"MCP server {name!r} failed to start: {error or 'cancelled'}{self._stderr_tail}")

    def _means_loss(self, error: MCPError) -> bool:
        from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR

        if self.server.url is not None:
            # A server that lost the session calls the next request invalid.
            return error.code in (CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR)
        # Programs use the same code for their own failures.
        return error.code == CONNECTION_CLOSED and error.message == "Connection closed"

    def _lost_error(self) -> InfraError:
        why = f"{self._error or 'it was closed'}{self._stderr_tail}"
        return InfraError(f"MCP server {self.server.name!r} was lost: {why}")


async def close_all(connections: Sequence[McpConnection]) -> None:
    await asyncio.gather(*(connection.close() for connection in connections))


async def list_tools(client: Client) -> list[types.Tool]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            return tools


async def refuse_failure(response: Any) -> None:
    """mcp reports a broken gateway like a failed tool; only MCP errors may reach the model."""
    speaks_mcp = response.headers.get("content-type", "").startswith("application/json")
    if response.status_code >= 400 and response.status_code not in (404, 405) and not speaks_mcp:
        response.raise_for_status()


def tools_by_name(connections: Sequence[McpConnection], own: Mapping[str, Tool]) -> dict[str, Tool]:
    """Tools by the name the model sees, prefixed with the server's where a name is not unique."""
    names = Counter([*own, *(sanitize_tool_name(tool.name) for each in connections for tool in each.tools)])
    tools = dict(own)
    for connection in connections:
        for tool in connection.tools:
            name = sanitize_tool_name(tool.name)
            if names[name] > 1:
                name = sanitize_tool_name(f"{connection.server.name}_{tool.name}")
            name = unique_tool_name(name, tools)
            tools[name] = as_tool(connection, tool, name)
    return tools


def as_tool(connection: McpConnection, tool: types.Tool, name: str) -> McpTool:
    async def call(**arguments: Any) -> str:
        return await connection.call(tool.name, arguments)

    spec = ToolSpec(name, tool.description or "", tool.input_schema)
    return McpTool(function=call, spec=spec, is_async=True, hidden=frozenset(), types={})


def sanitize_tool_name(name: str) -> str:
    """A name that every provider accepts for a tool."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:LONGEST_NAME]


def unique_tool_name(name: str, taken: Mapping[str, object]) -> str:
    number, unique = 1, name
    while unique in taken:
        number += 1
        ending = f"_{number}"
        unique = name[: LONGEST_NAME - len(ending)] + ending
    return unique


def text_of_result(result: types.CallToolResult) -> str:
    if not result.content and result.structured_content is not None:
        return as_text(result.structured_content)
    return "\n".join(text_of_part(part) for part in result.content)


def text_of_part(part: types.ContentBlock) -> str:
    if part.type == "text":
        return part.text
    if part.type == "resource_link":
        return f"[{part.name}: {part.uri}]"
    if part.type == "resource":
        text = getattr(part.resource, "text", None)
        return text if isinstance(text, str) else f"[{part.resource.uri}, which cannot be shown]"
    return f"[{part.mime_type}, which cannot be shown]"


def validate_servers(servers: Sequence[McpServer | Mapping[str, Any]]) -> tuple[McpServer, ...]:
    if not servers:
        raise ConfigError("An MCP environment needs at least one server.")
    checked = tuple(validate_server(server) for server in servers)
    names = Counter(server.name for server in checked)
    if twice := [name for name in names if names[name] > 1]:
        raise ConfigError(f"Two MCP servers are called {twice[0]!r}; rename one.")
    return checked


def validate_server(given: McpServer | Mapping[str, Any]) -> McpServer:
    try:
        server = msgspec.convert(given, McpServer, from_attributes=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{given!r} does not describe an MCP server: {error}.") from error
    if bool(server.command) == bool(server.url):
        raise ConfigError(f"MCP server {server.name!r} needs either a 'command' or a 'url'.")
    return server


def require_mcp() -> None:
    try:
        from mcp import Client  # noqa: F401
    except ImportError as error:
        raise ConfigError("MCP servers need the mcp package: pip install 'proctor[mcp]'.") from error
    for name in ("mcp", "client"):  # it logs under both
        log = logging.getLogger(name)
        if not log.handlers:  # without one, Python prints warnings on the terminal
            log.addHandler(logging.NullHandler())


def unwrap_error_group(error: BaseException) -> BaseException:
    """The error inside the exception groups of mcp."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def read_stderr_tail(stderr: TextIO) -> str:
    """The end of a server's output, for its error message."""
    fd = stderr.fileno()
    os.lseek(fd, -min(KEPT_BYTES, os.fstat(fd).st_size), os.SEEK_END)
    end = os.read(fd, KEPT_BYTES)
    lines = end.decode(errors="replace").split("\n")
    printed = [line.strip() for line in lines if line.strip()]
    return f" (last output: {printed[-1][:300]})" if printed else ""
