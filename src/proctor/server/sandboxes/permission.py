"""Check who may use sandboxes and instances: only runs that were granted them.

Knows nothing of HTTP.
"""

from __future__ import annotations

from typing import Literal

from proctor.api.runs import Cause
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ForbiddenError
from proctor.server.sandboxes import records

PermissionName = Literal["sandboxes", "instances"]
FLAGS: dict[PermissionName, str] = {
    "sandboxes": "--allow-sandbox-access",
    "instances": "--allow-instances-access",
}


async def need_grant(platform: Platform, caller: Caller, permission: PermissionName) -> records.RequestingRun:
    """The run that makes the request, if it was granted the permission; otherwise its log says so too."""
    need_run(caller, permission)
    asking = await platform.database.read(records.find_requesting_run, caller.run_id or "")
    if getattr(asking.permissions, permission):
        return asking
    message = f"The environment requested {permission}, which this run was not granted."
    next_step = f"Start it again with {FLAGS[permission]}."
    cause = Cause(code="missing_permission", message=message, next_step=next_step)
    await platform.runs.note(asking.id, cause)
    raise ForbiddenError(f"{message} {next_step}", code="missing_permission", flag=FLAGS[permission])


def need_run(caller: Caller, permission: PermissionName) -> None:
    if caller.kind != "run" or caller.run_id is None:
        caller.need("runs:read")
        raise ForbiddenError(f"Only hosted runs have {permission}; request them from inside a run.")


def need_run_or_admin(caller: Caller, permission: PermissionName) -> None:
    if not caller.is_admin:
        need_run(caller, permission)
