"""The audit log over HTTP, for admins."""

from __future__ import annotations

from litestar import Router, get
from litestar.params import FromQuery

from proctor.api.audit import AuditEntry
from proctor.api.common import Page
from proctor.server.audit.records import AuditFilter, list_audit
from proctor.server.paging import build_page, check_limit, decode_cursor
from proctor.server.requests import CallerDependency, PlatformDependency


@get("/audit", summary="Who changed what, newest first; for admins")
async def list_audit_log(
    caller: CallerDependency,
    platform: PlatformDependency,
    user: FromQuery[str | None] = None,
    action: FromQuery[str | None] = None,
    target: FromQuery[str | None] = None,
    since: FromQuery[float | None] = None,
    until: FromQuery[float | None] = None,
    cursor: FromQuery[str | None] = None,
    limit: FromQuery[int] = 100,
) -> Page[AuditEntry]:
    """`action` may be a kind of thing with its dot, such as `token.`; `target` is a part of it."""
    caller.need_admin()
    wanted = AuditFilter(user=user, action=action, target=target, since=since, until=until)
    position = decode_cursor(cursor, float, str)
    after = None if position is None else (position[0], position[1])
    found = await platform.database.read(list_audit, wanted, after, check_limit(limit))
    return build_page(found, limit, lambda entry: (entry.at, entry.id))


router = Router("", route_handlers=[list_audit_log], tags=["admin"])
