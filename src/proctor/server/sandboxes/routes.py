"""Sandboxes and instances over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from litestar import Request, Router, WebSocket, delete, get, post, put, route, websocket
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Stream
from litestar.status_codes import HTTP_200_OK, HTTP_204_NO_CONTENT
from litestar.types import Method
from sqlalchemy import Connection

from proctor.api.bounds import MEGABYTE
from proctor.api.common import IDEMPOTENCY_HEADER, Page
from proctor.api.sandboxes import Exec, ExecResult, Instance, NewInstance, NewSandbox, Sandbox
from proctor.server.openapi.described import BINARY, describe
from proctor.server.paging import build_page, check_limit, decode_cursor
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ApiError, InvalidError
from proctor.server.request_fields import LENIENT
from proctor.server.requests import (
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    caller_from_headers,
    run_idempotent,
)
from proctor.server.sandboxes import files, proxy, records
from proctor.server.sandboxes.backend import BackendSandbox, SandboxSpec, ServedProgram
from proctor.server.sandboxes.lifecycle import LiveSandbox
from proctor.server.sandboxes.permission import need_grant, need_run, need_run_or_admin

LAST_PORT = 65_535
LONGEST_COMMAND_SECONDS = 3600.0
METHODS: Sequence[Method] = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
LARGEST_WITH_FILES = 4 * MEGABYTE
"""For a request with an input or files; larger content is written as a file of its own."""
LARGEST_CARRIED = 64 * MEGABYTE
"""For a request to a program in an instance, which is forwarded as it comes."""


# Sandboxes


@post("/sandboxes", summary="Create a sandbox; for runs that were granted it")
async def add_sandbox(
    request: HttpRequest, data: JSONBody[NewSandbox], caller: CallerDependency, platform: PlatformDependency
) -> Sandbox:
    asking = await need_grant(platform, caller, "sandboxes")
    minutes, spec = build_spec(platform, data)
    backend = await platform.sandboxes.choose(data.backend)

    def work(connection: Connection) -> Sandbox:
        row = records.add_record(
            connection,
            caller,
            "sandbox",
            server=platform.sandboxes.server,
            backend=backend,
            spec={},
            minutes=minutes,
            at_once=platform.sandboxes.limits.at_once,
            deadline_at=asking.deadline_at,
        )
        return records.build_sandbox(row)

    created = await run_idempotent(request, platform, caller, work, Sandbox)
    await platform.sandboxes.make(created.id, created.backend, spec, prepare_nothing)
    return records.build_sandbox(await platform.database.read(records.find_row, created.id))


@get("/sandboxes", summary="The run's sandboxes; an admin sees all")
async def list_sandboxes(
    caller: CallerDependency,
    platform: PlatformDependency,
    cursor: FromQuery[str | None] = None,
    limit: FromQuery[int] = 100,
) -> Page[Sandbox]:
    need_run_or_admin(caller, "sandboxes")
    after: Any = decode_cursor(cursor, float, str)
    rows = await platform.database.read(records.list_rows, caller, "sandbox", after, check_limit(limit))
    return build_page([records.build_sandbox(row) for row in rows], limit, sort_key)


@get("/sandboxes/{sandbox:str}", summary="The status of a sandbox")
async def show_sandbox(
    sandbox: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Sandbox:
    need_run_or_admin(caller, "sandboxes")
    return records.build_sandbox(
        await platform.database.read(records.find_visible, caller, "sandbox", sandbox)
    )


@delete("/sandboxes/{sandbox:str}", summary="End a sandbox; nothing of it is left")
async def end_sandbox(sandbox: FromPath[str], caller: CallerDependency, platform: PlatformDependency) -> None:
    need_run_or_admin(caller, "sandboxes")
    await platform.database.read(records.find_visible, caller, "sandbox", sandbox)
    await platform.sandboxes.end(sandbox, "It was deleted.")


@post(
    "/sandboxes/{sandbox:str}/exec",
    summary="Run a command in a sandbox",
    status_code=HTTP_200_OK,
    request_max_body_size=LARGEST_WITH_FILES,
)
async def run_command(
    request: HttpRequest,
    sandbox: FromPath[str],
    data: JSONBody[Exec],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> ExecResult:
    if not data.command or "\0" in "".join(data.command):
        raise InvalidError("Give a command without NUL characters.", field="command")
    if not 0 < data.timeout_seconds <= LONGEST_COMMAND_SECONDS:
        raise InvalidError(
            f"A command may take up to {LONGEST_COMMAND_SECONDS:g} s.", field="timeout_seconds"
        )
    check_variables(data.variables)
    live = await find_usable(platform, caller, sandbox)
    return await live.run(data, request.headers.get(IDEMPOTENCY_HEADER, ""))


@get("/sandboxes/{sandbox:str}/files/{path:path}", summary="Read a file of a sandbox", media_type=BINARY)
async def read_file(
    sandbox: FromPath[str], path: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Stream:
    live = await find_usable(platform, caller, sandbox)
    reading = files.open_file_stream(live.sandbox, strip_slash(path), platform.sandboxes.limits.transfer_mb)
    async with AsyncExitStack() as opening:
        await opening.enter_async_context(live.turn())
        chunks = await opening.enter_async_context(reading)
        stack = opening.pop_all()

    async def all_of_it() -> AsyncGenerator[bytes, None]:
        async with stack:
            async for chunk in chunks:
                yield chunk

    return Stream(all_of_it(), media_type="application/octet-stream", headers=proxy.CONTAINMENT_HEADERS)


@put(
    "/sandboxes/{sandbox:str}/files/{path:path}",
    summary="Write a file of a sandbox, completely or not at all",
    status_code=HTTP_204_NO_CONTENT,
    request_max_body_size=None,
    opt=describe(body=bytes),
)
async def write_file(
    request: HttpRequest,
    sandbox: FromPath[str],
    path: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
) -> None:
    live = await find_usable(platform, caller, sandbox)
    async with live.turn():
        await files.write_file(
            live.sandbox, strip_slash(path), request.stream(), platform.sandboxes.limits.transfer_mb
        )


# Instances


@post(
    "/instances",
    summary="Start a program with a port; for runs that were granted it",
    request_max_body_size=LARGEST_WITH_FILES,
)
async def add_instance(
    request: HttpRequest, data: JSONBody[NewInstance], caller: CallerDependency, platform: PlatformDependency
) -> Instance:
    asking = await need_grant(platform, caller, "instances")
    minutes, spec = build_spec(platform, data)
    if not data.command or "\0" in "".join(data.command):
        raise InvalidError("Give a command, as a list of arguments.", field="command")
    if not 0 < data.port <= LAST_PORT:
        raise InvalidError(f"A port is a number from 1 to {LAST_PORT}.", field="port")
    check_variables(data.variables)
    for path in data.files:
        files.inner_path(path)
    backend = await platform.sandboxes.choose(data.backend)

    def work(connection: Connection) -> Instance:
        row = records.add_record(
            connection,
            caller,
            "instance",
            server=platform.sandboxes.server,
            backend=backend,
            spec={"port": data.port},
            minutes=minutes,
            at_once=platform.sandboxes.limits.at_once,
            deadline_at=asking.deadline_at,
        )
        return records.build_instance(row)

    async def prepare(live: BackendSandbox) -> ServedProgram:
        for path, text in data.files.items():
            await files.write_file(
                live, path, single_chunk(text.encode()), platform.sandboxes.limits.transfer_mb
            )
        return ServedProgram(command=data.command, port=data.port, variables=data.variables)

    created = await run_idempotent(request, platform, caller, work, Instance)
    await platform.sandboxes.make(created.id, created.backend, spec, prepare)
    return records.build_instance(await platform.database.read(records.find_row, created.id))


@get("/instances", summary="The run's instances; an admin sees all")
async def list_instances(
    caller: CallerDependency,
    platform: PlatformDependency,
    cursor: FromQuery[str | None] = None,
    limit: FromQuery[int] = 100,
) -> Page[Instance]:
    need_run_or_admin(caller, "instances")
    after: Any = decode_cursor(cursor, float, str)
    rows = await platform.database.read(records.list_rows, caller, "instance", after, check_limit(limit))
    return build_page([records.build_instance(row) for row in rows], limit, sort_key)


@get("/instances/{instance:str}", summary="The status of an instance")
async def show_instance(
    instance: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Instance:
    need_run_or_admin(caller, "instances")
    await platform.database.read(records.find_visible, caller, "instance", instance)
    await platform.sandboxes.look(instance)
    return records.build_instance(await platform.database.read(records.find_row, instance))


@delete("/instances/{instance:str}", summary="End an instance; nothing of it is left")
async def end_instance(
    instance: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> None:
    need_run_or_admin(caller, "instances")
    await platform.database.read(records.find_visible, caller, "instance", instance)
    await platform.sandboxes.end(instance, "It was deleted.")


PORT_PATHS = ["/instances/{instance:str}/port", "/instances/{instance:str}/port/{rest:path}"]


@route(
    PORT_PATHS,
    http_method=METHODS,
    include_in_schema=False,
    status_code=HTTP_200_OK,
    request_max_body_size=LARGEST_CARRIED,
    opt=LENIENT,
)
async def carry_request(
    request: HttpRequest, instance: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Stream:
    live = await find_usable(platform, caller, instance, "instance")
    assert live.socket is not None
    watch = watching(platform, caller, instance, "instance")
    return await proxy.carry_request(request, live.socket, parse_program_target(request), watch)


@websocket(PORT_PATHS)
async def carry_websocket(
    socket: WebSocket[Any, Any, Any], instance: FromPath[str], platform: PlatformDependency
) -> None:
    try:
        caller = await caller_from_headers(socket.headers, platform)
        live = await find_usable(platform, caller, instance, "instance")
    except ApiError as error:
        await socket.close(proxy.REFUSED + error.status, str(error))
        return
    assert live.socket is not None
    watch = watching(platform, caller, instance, "instance")
    await proxy.carry_websocket(socket, live.socket, parse_program_target(socket), watch)


# Shared


async def find_usable(
    platform: Platform, caller: Caller, sandbox_id: str, kind: records.SandboxKind = "sandbox"
) -> LiveSandbox:
    """A sandbox for its own run to use; others may only look at it."""
    need_run(caller, "sandboxes" if kind == "sandbox" else "instances")
    await platform.database.read(records.find_visible, caller, kind, sandbox_id)
    return await platform.sandboxes.find_ready(sandbox_id)


def watching(platform: Platform, caller: Caller, sandbox_id: str, kind: records.SandboxKind) -> proxy.Watch:
    """Ends a connection to a sandbox if its caller loses the permission."""

    async def check(now: Caller) -> None:
        await platform.database.read(records.find_visible, now, kind, sandbox_id)

    return lambda cut: platform.watch.guard(caller, check, cut)


def build_spec(platform: Platform, request: NewSandbox | NewInstance) -> tuple[int, SandboxSpec]:
    limits = platform.sandboxes.limits
    if not 0 < request.timeout_minutes <= limits.longest_minutes:
        raise InvalidError(
            f"A sandbox lasts up to {limits.longest_minutes} minutes.", field="timeout_minutes"
        )
    memory_mb = limits.memory_mb if request.memory_mb is None else request.memory_mb
    if not 0 < memory_mb <= limits.memory_mb:
        raise InvalidError(f"A sandbox has up to {limits.memory_mb} MB of memory.", field="memory_mb")
    if request.image is not None and request.backend != "docker":
        raise InvalidError("Only containers have an image; set backend to docker as well.", field="image")
    return request.timeout_minutes, SandboxSpec(
        memory_mb=memory_mb,
        processes=limits.processes,
        disk_mb=limits.disk_mb,
        image=request.image or limits.image,
    )


def check_variables(variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name + value:
            raise InvalidError(f"{name!r} cannot be the name of a variable.", field="variables")


def strip_slash(path: str) -> str:
    """The path as requested: the framework puts a slash before every path."""
    return path.removeprefix("/")


def parse_program_target(request: Request[Any, Any, Any] | WebSocket[Any, Any, Any]) -> str:
    """The request's target for the program: everything after `/port`, exactly as it came."""
    raw = request.scope["raw_path"].decode("ascii")
    query = request.scope["query_string"].decode("ascii")
    return (raw.partition("/port")[2] or "/") + (f"?{query}" if query else "")


def sort_key(created: Sandbox | Instance) -> tuple[float, str]:
    return created.created_at, created.id


async def prepare_nothing(_: BackendSandbox) -> None:
    """A sandbox needs no preparation."""


async def single_chunk(data: bytes) -> AsyncGenerator[bytes, None]:
    yield data


router = Router(
    "/",
    route_handlers=[
        add_sandbox,
        list_sandboxes,
        show_sandbox,
        end_sandbox,
        run_command,
        read_file,
        write_file,
        add_instance,
        list_instances,
        show_instance,
        end_instance,
        carry_request,
        carry_websocket,
    ],
    tags=["sandboxes"],
)
