"""Check whether a run's owner may still have it played: enabled, and a member of the team that pays.

Checked when a run is resumed, when a host claims it, and every second while it is under way. Knows nothing of
HTTP.
"""

from __future__ import annotations

from sqlalchemy import Connection, exists, or_, select

from proctor.api.runs import Cause
from proctor.server.db.tables import members, runs, users
from proctor.server.people.tokens import Caller
from proctor.server.problems import ForbiddenError
from proctor.server.runs import queue

UNDER_WAY = ("pending", "running")
NEXT_STEP = "Anyone who may use the environment and the team can start a run of their own."


def need_owner(connection: Connection, owner: Caller, team: str | None) -> None:
    """Refuse to play a run whose owner was disabled, or left the team that would pay for it."""
    disabled_at = select(users.c.disabled_at).where(users.c.name == owner.user)
    if connection.execute(disabled_at).scalar_one() is not None:
        raise ForbiddenError(describe_disabled_user(owner.user), code="user_disabled")
    if team is not None and team not in owner.teams and not owner.is_admin:
        raise ForbiddenError(f"{describe_left_team(owner.user, team)} {NEXT_STEP}", code="not_a_member")


def stop_disallowed(connection: Connection, now: float) -> list[str]:
    """Stop the runs whose owner may no longer have them played; returns the ids of those that changed."""
    is_member = exists().where(members.c.team == runs.c.team, members.c.user == runs.c.owner)
    left_team = runs.c.team.is_not(None) & users.c.is_admin.is_(False) & ~is_member
    query = (
        select(runs.c.id, runs.c.owner, runs.c.team, users.c.disabled_at)
        .join(users, users.c.name == runs.c.owner)
        .where(runs.c.kind == "hosted", runs.c.status.in_(UNDER_WAY))
        .where(or_(users.c.disabled_at.is_not(None), left_team))
    )
    found = connection.execute(query).all()
    for row in found:
        why = (
            describe_left_team(row.owner, row.team)
            if row.disabled_at is None
            else describe_disabled_user(row.owner)
        )
        cause = Cause(code="stopped_by_user", message=why, next_step=NEXT_STEP)
        queue.stop(connection, row.id, cause, now)
    return [row.id for row in found]


def describe_disabled_user(user: str) -> str:
    return f"{user} was disabled by an admin of the server."


def describe_left_team(user: str, team: str) -> str:
    return f"{user} is no longer a member of team {team!r}."
