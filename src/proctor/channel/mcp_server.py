"""The tools of a session as an MCP server, for clients that do not speak our additions.

Streamable HTTP in its simplest form: every request is a POST, answered at once with JSON. Written by hand,
because the MCP library takes a second to import and most served environments never need it. The path names
the session, so that one port serves all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.channel.frames import INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR, TASK_FAILED
from proctor.contracts import Toolbox
from proctor.errors import ProctorError
from proctor.trace import Content

if TYPE_CHECKING:
    from aiohttp import web

PROTOCOL = "mcp/2025-11-25"
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
SERVER_VERSION = 1
"""Version of this server; changes with its features."""
MOST_BYTES = 64 * 1024 * 1024

FindToolbox = Callable[[str], Toolbox | None]
"""The toolbox of a session, once it has started a task."""


class McpToolServer:
    """Listens on a port of its own, once it is needed."""

    def __init__(self, find: FindToolbox, excluded: Callable[[], Collection[str]] = tuple) -> None:
        self._find = find
        self._excluded = excluded
        """Tools that are not listed here."""
        self._starting = asyncio.Lock()
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self) -> int:
        """The port; the first call opens it."""
        async with self._starting:
            if self._runner is None:
                from aiohttp import web

                app = web.Application(client_max_size=MOST_BYTES)
                app.router.add_route("*", "/mcp/{session}", self._handle)
                self._runner = web.AppRunner(app, access_log=None)
                await self._runner.setup()
                site = web.TCPSite(self._runner, "127.0.0.1", 0)
                await site.start()
                self.port = self._runner.addresses[0][1]
        return self.port

    async def close(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        from aiohttp import web

        if request.method != "POST":  # we offer no stream, and there is no session to end
            return web.Response(status=405 if request.method == "GET" else 200)
        try:
            frame = msgspec.json.decode(await request.read(), type=McpRequest)
        except msgspec.MsgspecError as error:
            return json_rpc_response(None, error={"code": PARSE_ERROR, "message": str(error)})
        if frame.id is None:
            return web.Response(status=202)
        try:
            result = await self._answer(request.match_info["session"], frame)
        except RpcError as error:
            return json_rpc_response(frame.id, error={"code": error.code, "message": str(error)})
        return json_rpc_response(frame.id, result=result)

    async def _answer(self, session: str, frame: McpRequest) -> Mapping[str, Any]:
        if frame.method == "initialize":
            wanted = frame.params.get("protocolVersion")
            return {
                "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "proctor", "version": str(SERVER_VERSION)},
            }
        if frame.method == "ping":
            return {}
        if frame.method == "tools/list":
            return {"tools": self._listing(session)}
        if frame.method == "tools/call":
            return await self._call(session, frame.params)
        raise RpcError(METHOD_NOT_FOUND, f"method not found: {frame.method}")

    def _listing(self, session: str) -> list[Mapping[str, Any]]:
        toolbox = self._find(session)
        tools = () if toolbox is None else toolbox.tools
        excluded = self._excluded()
        return [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}
            for tool in tools
            if tool.name not in excluded
        ]

    async def _call(self, session: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        toolbox, name = self._find(session), params.get("name")
        if toolbox is None:
            raise RpcError(
                TASK_FAILED, "no task is started, so there are no tools yet; send tasks.start first"
            )
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "tools/call: 'name' must be a string")
        arguments = msgspec.json.encode(params.get("arguments") or {}).decode()
        try:
            return {"content": parts_of(await toolbox.call(name, arguments)), "isError": False}
        except ProctorError as error:
            return {"content": parts_of(str(error)), "isError": True}


class McpRequest(msgspec.Struct, frozen=True):
    """An MCP request."""

    method: str = ""
    id: int | str | None = None
    params: dict[str, Any] = {}


class RpcError(Exception):
    """A request is refused."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def json_rpc_response(id: int | str | None, **outcome: Any) -> web.Response:  # noqa: A002
    from aiohttp import web

    body = msgspec.json.encode({"jsonrpc": "2.0", "id": id, **outcome})
    return web.Response(body=body, content_type="application/json")


def parts_of(content: Content) -> list[dict[str, Any]]:
    """A tool's result as MCP content; images are sent as their bytes."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part_of(part) for part in content]


def part_of(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text", "")}
    address = str((part.get("image_url") or {}).get("url", ""))
    header, comma, data = address.partition(",")
    if header.startswith("data:") and comma:
        return {"type": "image", "data": data, "mimeType": header.removeprefix("data:").split(";")[0]}
    return {"type": "text", "text": address}
