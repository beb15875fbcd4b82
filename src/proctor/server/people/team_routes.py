"""Teams and their members over HTTP."""

from __future__ import annotations

from litestar import Router, delete, get, patch, post, put
from litestar.params import FromPath, JSONBody
from sqlalchemy import Connection

from proctor.api.common import Page
from proctor.api.people import Member, Membership, NewTeam, Team, TeamChange
from proctor.server.audit.changes import AuditDependency
from proctor.server.people import records, team_changes
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency, run_idempotent


@post("/teams", summary="Found a team; the founder is its admin")
async def add_team(
    request: HttpRequest,
    data: JSONBody[NewTeam],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> Team:
    caller.need("environments:write")
    start = None if platform.ledger_start is None else 0

    def work(connection: Connection) -> Team:
        return records.add_team(connection, data.name, caller.user, start)

    added = audit.of(caller, "team.add", data.name, work)
    team = await run_idempotent(request, platform, caller, added, Team)
    platform.callers.forget()
    return team


@get("/teams", summary="Your teams")
async def list_teams(caller: CallerDependency) -> Page[Membership]:
    caller.need("environments:read")
    return Page(records.list_memberships(caller))


@get("/teams/{team:str}/members", summary="The members of a team")
async def list_members(
    team: FromPath[str], caller: CallerDependency, platform: PlatformDependency
) -> Page[Member]:
    caller.need("environments:read")

    def work(connection: Connection) -> list[Member]:
        records.need_team(connection, caller, team)
        return records.list_members(connection, team)

    return Page(await platform.database.read(work))


@put("/teams/{team:str}/members", summary="Add a user to a team, or change their role")
async def put_member(
    team: FromPath[str],
    data: JSONBody[Member],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> Member:
    caller.need("environments:write")

    def work(connection: Connection) -> Member:
        records.need_team(connection, caller, team, to_change=True)
        return records.put_member(connection, team, data)

    details = {"user": data.user, "role": data.role}
    member = await platform.database.write(audit.of(caller, "member.set", team, work, details))
    platform.callers.forget()
    return member


@delete("/teams/{team:str}/members/{user:str}", summary="Remove a user from a team")
async def remove_member(
    team: FromPath[str],
    user: FromPath[str],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> None:
    caller.need("environments:write")

    def work(connection: Connection) -> None:
        records.need_team(connection, caller, team, to_change=user != caller.user)
        records.remove_member(connection, team, user)

    await platform.database.write(audit.of(caller, "member.remove", team, work, {"user": user}))
    platform.callers.forget()
    await platform.runs.sweep()  # ends what they started for the team


@patch("/teams/{team:str}", summary="Rename a team that owns no environments and no datasets")
async def rename_team(
    team: FromPath[str],
    data: JSONBody[TeamChange],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> Team:
    """Its former name stays taken."""
    caller.need("environments:write")

    def work(connection: Connection) -> Team:
        records.need_team(connection, caller, team, to_change=True)
        return team_changes.rename_team(connection, team, data.name)

    renamed = audit.of(caller, "team.rename", team, work, {"name": data.name})
    found = await platform.database.write(renamed)
    platform.callers.forget()
    platform.meter.forget()
    return found


@delete("/teams/{team:str}", summary="Delete a team that owns no environments and no datasets")
async def delete_team(
    team: FromPath[str], caller: CallerDependency, platform: PlatformDependency, audit: AuditDependency
) -> None:
    """Its secrets and sources go with it, and its runs become their owners' own. Its name stays taken."""
    caller.need("environments:write")

    def work(connection: Connection) -> None:
        records.need_team(connection, caller, team, to_change=True)
        team_changes.delete_team(connection, team)

    await platform.database.write(audit.of(caller, "team.delete", team, work))
    platform.callers.forget()


router = Router(
    "",
    route_handlers=[add_team, list_teams, list_members, put_member, remove_member, rename_team, delete_team],
    tags=["people"],
)
