"""Who may read a run, and how much of it; docs/security.md has the table.

The owner of a run and the members of its team read and change it (`records.need_visible_run`). Others may
read it: the writers of its environment always, its readers or anyone with the link if the run is shared with
them. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Row, or_, select, update

from proctor.api.hub import ROLE_RANK
from proctor.api.runs import RunInfo, RunVisibility
from proctor.report.summary import Summary
from proctor.server.announcements import DeletedRun
from proctor.server.db.tables import environments, roles, runs
from proctor.server.hub.access import list_namespaces, readable_condition, role_of
from proctor.server.people.tokens import ANONYMOUS, Caller
from proctor.server.problems import ForbiddenError, InvalidError, NotFoundError
from proctor.server.runs import links, records
from proctor.server.secrets.vault import Vault

PRIVATE_SETTINGS = frozenset({"headers", "api_base_url", "api_key_var"})
"""Settings of the owner's own endpoint, which no one else may read."""
WRITING_ROLES = [role for role, rank in ROLE_RANK.items() if rank >= ROLE_RANK["write"]]

Access = Literal["owner", "writer", "reader"]
"""`writer` and `reader` are those of the run's environment; anyone with the link is a reader."""


def need_readable_run(
    connection: Connection, caller: Caller, run_id: str, link: str = "", *, with_log: bool = False
) -> tuple[Row[Any], Access]:
    """A run that the caller may read, and as what."""
    row = connection.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
    access = None if row is None else find_access(connection, caller, row, link)
    if row is None or access is None:
        raise NotFoundError(f"There is no run {run_id!r} that you may see; `proctor eval list` lists yours.")
    if with_log:
        need_log_access(access)
    return row, access


def need_changeable_run(connection: Connection, caller: Caller, run_id: str) -> Row[Any]:
    """A run that the caller may change; the error says so if they may only read it."""
    row, access = need_readable_run(connection, caller, run_id)
    if caller.kind != "user":
        raise ForbiddenError("A run's token cannot change runs.")
    if access != "owner":
        raise ForbiddenError(
            f"You may read {run_id}, and not change it; ask {row.owner}, who started it.",
            code="read_only",
            owner=row.owner,
        )
    return row


def as_reader(caller: Caller, link: str = "") -> Caller:
    """Who reads runs: the caller or, with a link, anyone. A token that may not read runs counts as none then:
    the link may be false."""
    if link and (caller.kind == "first" or "runs:read" not in caller.scopes):
        return ANONYMOUS
    caller.need("runs:read")
    return caller


def need_log_access(access: Access) -> None:
    if access == "reader":
        raise ForbiddenError(
            "The log of a run is for its owner, its team and the writers of its environment.",
            code="log_not_shared",
        )


def find_access(
    connection: Connection, caller: Caller, row: Row[Any] | DeletedRun, link: str
) -> Access | None:
    if records.may_change(caller, row):
        return "owner"
    role = None
    if row.environment_id is not None and caller.kind == "user" and not caller.is_anonymous:
        query = select(environments).where(environments.c.id == row.environment_id)
        environment = connection.execute(query).one_or_none()
        role = None if environment is None else role_of(connection, caller, environment)
    if ROLE_RANK.get(role or "", 0) >= ROLE_RANK["write"]:
        return "writer"
    if row.visibility == "readers" and role is not None:
        return "reader"
    return "reader" if row.visibility == "link" and links.is_link(connection, row.id, link) else None


def readable_runs(connection: Connection, caller: Caller) -> ColumnElement[bool] | None:
    """As a condition: all runs that the caller may read without a link; None for all."""
    own = records.visibility_condition(caller)
    if own is None or caller.kind != "user" or caller.is_anonymous:
        return own
    names = list_namespaces(caller)
    granted = select(roles.c.environment_id).where(roles.c.holder.in_(names), roles.c.role.in_(WRITING_ROLES))
    written = select(environments.c.id).where(
        or_(environments.c.owner.in_(names), environments.c.id.in_(granted))
    )
    read = select(environments.c.id).where(readable_condition(connection, caller))
    shared = (runs.c.visibility == "readers") & runs.c.environment_id.in_(read)
    return or_(own, runs.c.environment_id.in_(written), shared)


def access_in_list(caller: Caller, row: Row[Any]) -> Access:
    """As what a caller reads a run in a list of those that they may read."""
    return "owner" if records.may_change(caller, row) else "reader"


def limit_to(access: Access, run: RunInfo) -> RunInfo:
    """What a reader sees of a run: nothing of its owner's money, their own endpoint or their repository."""
    if access == "owner":
        return run
    return replace(
        run,
        may_change=False,
        team=None,
        max_cost_usd=None,
        cost_usd=None,
        settings=without_private(run.settings),
        summary=None if run.summary is None else hide_money(run.summary),
        origin=None,
    )


def hide_money(summary: Mapping[str, Any]) -> dict[str, Any]:
    members = {name: hide_money(member) for name, member in (summary.get("members") or {}).items()}
    return {**summary, "cost_usd": None, "saved_usd": None, "members": members}


def limit_summary(access: Access, summary: Summary) -> Summary:
    if access == "owner":
        return summary
    members = {name: limit_summary(access, member) for name, member in summary.members.items()}
    return replace(summary, cost_usd=None, saved_usd=None, members=members)


def without_private(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in PRIVATE_SETTINGS}


def limit_metadata(access: Access, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    if access == "owner":
        return metadata
    known = {name: value for name, value in metadata.items() if name != "base_url"}
    config = known.get("config")
    return {**known, "config": without_private(config)} if isinstance(config, Mapping) else known


# Changing


def set_visibility(
    connection: Connection, vault: Vault, run: Row[Any], visibility: RunVisibility, *, new_link: bool = False
) -> None:
    """Share a run, or stop sharing it. A link is valid until the run is no longer shared by link, or has a
    new one."""
    if visibility == "team" and run.team is None:
        raise InvalidError(
            f"{run.id} belongs to no team; share it with the readers of its environment or by link, or start "
            "the next one with --team.",
            field="visibility",
        )
    if visibility == "readers" and run.environment_id is None:
        raise InvalidError(
            f"{run.environment} is not an environment of this server, so it has no readers; share the run by "
            "link.",
            field="visibility",
        )
    connection.execute(update(runs).where(runs.c.id == run.id).values(visibility=visibility))
    if visibility != "link" or new_link:
        links.remove_link(connection, run.id)
    if visibility == "link" and links.read_link(connection, vault, run.id) is None:
        links.add_link(connection, vault, run.id)
