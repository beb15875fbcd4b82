"""The example evaluation over HTTP: can it be played here, and play it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from litestar import Router, get, post
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from proctor.api.example import ExampleState
from proctor.api.runs import NewRun, RunInfo
from proctor.server.audit.changes import AuditDependency
from proctor.server.example.package import NAME, VERSION, pack_example
from proctor.server.gateway.models import LOCAL
from proctor.server.hub.access import find_environment
from proctor.server.hub.push import publish
from proctor.server.people.tokens import Caller, has_host
from proctor.server.platform import Platform
from proctor.server.problems import ConflictError
from proctor.server.quotas import check_storage
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency, run_idempotent
from proctor.server.runs.checking import need_starter, need_valid
from proctor.server.runs.queue import NO_HOST
from proctor.server.runs.routes import start_run
from proctor.server.storage.records import refer_to_files

SETTINGS = {"num_examples": 5, "rollouts_per_example": 3}
NOT_INSTALLED = (
    "The embedded model is not installed on this server; its operator installs it with "
    "`pip install 'proctor[local]'`."
)
NOT_OFFERED = "This server does not offer the embedded model; its operator started it with --no-local-model."
NO_SCOPE = "Your session may not push environments and start runs; log in with a token that may."


@get("/example", summary="Whether the example evaluation can be played here, and if not, why")
async def read_example(caller: CallerDependency, platform: PlatformDependency) -> ExampleState:
    caller.need("runs:read")
    connected = await platform.database.read(has_host, time.time())
    return ExampleState(
        environment=f"{caller.user}/{NAME}",
        model=LOCAL,
        rollouts=SETTINGS["num_examples"] * SETTINGS["rollouts_per_example"],
        problem=find_obstacle(platform, caller, connected),
    )


def find_obstacle(platform: Platform, caller: Caller, has_connected_host: bool) -> str:
    if caller.kind != "user" or not {"runs:write", "environments:write"} <= caller.scopes:
        return NO_SCOPE
    if LOCAL not in platform.models.registry.endpoints:
        return NOT_INSTALLED if platform.settings.offer_local else NOT_OFFERED
    return "" if has_connected_host else NO_HOST


@post("/example", summary="Push the example environment as yours, and play it with the embedded model")
async def start_example(
    request: HttpRequest, caller: CallerDependency, platform: PlatformDependency, audit: AuditDependency
) -> RunInfo:
    need_starter(caller)
    caller.need("environments:write")
    connected = await platform.database.read(has_host, time.time())
    if problem := find_obstacle(platform, caller, connected):
        raise ConflictError(problem, code="no_example")
    if await platform.database.read(find_environment, caller.user, NAME) is None:
        await platform.main_index.check(NAME)
    slug = f"{caller.user}/{NAME}@{VERSION}"
    new, route = await need_valid(
        platform, NewRun(environment=slug, model=LOCAL, settings=SETTINGS, name=NAME)
    )
    with TemporaryDirectory(prefix="proctor-example-") as folder:
        push, files = await asyncio.to_thread(pack_example, caller.user, Path(folder))
        for file in files:
            await platform.blobs.adopt(file)
    hashes = [push.wheel_blob.sha256, push.source_blob.sha256]
    size = push.wheel_blob.size + push.source_blob.size

    def work(connection: Connection) -> RunInfo:
        refer_to_files(connection, hashes)
        check_storage(connection, caller.user, platform.settings.quotas, size)
        publish(connection, caller, push)
        return start_run(connection, platform, caller, audit, new, route)

    try:
        return await run_idempotent(request, platform, caller, work, RunInfo)
    except IntegrityError as error:
        raise ConflictError("Another request is doing the same; try again.") from error
    finally:
        await platform.blobs.remove_unused(hashes)


router = Router("", route_handlers=[read_example, start_example], tags=["runs"])
