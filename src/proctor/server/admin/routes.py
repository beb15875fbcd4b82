"""Hosts, the queue and storage over HTTP, for admins."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from litestar import Router, get

from proctor.api.admin import HostInfo, QueueItem, Storage
from proctor.api.bounds import MEGABYTE
from proctor.api.common import Page
from proctor.server.admin.storage import describe_storage, measure_storage
from proctor.server.admin.work import list_host_work, list_queue
from proctor.server.platform import Platform
from proctor.server.requests import CallerDependency, PlatformDependency


@get("/admin/hosts", summary="The hosts that play runs, and what each plays now")
async def list_working_hosts(caller: CallerDependency, platform: PlatformDependency) -> Page[HostInfo]:
    caller.need_admin()
    return Page(await platform.database.read(list_host_work, time.time()))


@get("/admin/queue", summary="What waits for a host, for whom, and why")
async def list_waiting(caller: CallerDependency, platform: PlatformDependency) -> Page[QueueItem]:
    caller.need_admin()
    most = platform.settings.runs_per_user
    return Page(await platform.database.read(list_queue, time.time(), most))


@get("/admin/storage", summary="What the server stores, by kind and by user")
async def read_storage(caller: CallerDependency, platform: PlatformDependency) -> Storage:
    caller.need_admin()
    measured = await platform.database.read(measure_storage)
    quota = platform.settings.quotas.user_storage_mb * MEGABYTE
    return await asyncio.to_thread(
        describe_storage, measured, platform.data, find_database_file(platform), quota
    )


def find_database_file(platform: Platform) -> Path | None:
    name = platform.database.url.database
    return Path(name) if platform.database.is_sqlite and name and name != ":memory:" else None


router = Router("", route_handlers=[list_working_hosts, list_waiting, read_storage], tags=["admin"])
