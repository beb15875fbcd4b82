"""Runs in the database: added, found by those who may see them, listed, described. Knows nothing of HTTP."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, delete, insert, or_, select, tuple_, update

from proctor.api.common import new_id
from proctor.api.runs import Cause, NewUpload, Permissions, RunEvent, RunInfo, RunVisibility, UploadEnd
from proctor.run import ENDED
from proctor.server.db.tables import run_origins, runs
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, ForbiddenError, NotFoundError
from proctor.server.runs import event_log as story
from proctor.server.runs import queue, rows
from proctor.server.sources.origins import find_origin

MILLION = 1_000_000
BRIEF_COLUMNS = [column for column in runs.c if column.name not in ("metadata", "settings", "summary")]
"""The columns of a list: the others may be long."""
NAMED_SETTINGS = [runs.c.settings[name].as_string().label(name) for name in ("agent", "runtime")]
"""What a list shows of the settings."""


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A hosted run that may be created: everything was resolved and validated."""

    name: str
    owner: str
    team: str | None
    environment_id: str
    version_id: str
    environment: str
    version: str
    content_hash: str
    model: str
    settings: Mapping[str, Any]
    permissions: Permissions
    timeout_minutes: int
    max_cost: int | None
    planned: int | None = None


def add_run(connection: Connection, asked: Submission, now: float) -> str:
    run_id = new_id("run")
    values = {**msgspec.structs.asdict(asked), "permissions": msgspec.to_builtins(asked.permissions)}
    values["visibility"] = default_visibility(asked.team)
    connection.execute(
        insert(runs).values(id=run_id, kind="hosted", **values, **initial_values("pending", now))
    )
    story.append_events(connection, run_id, [RunEvent(seq=0, at=now, kind="status", status="pending")])
    return run_id


def default_visibility(team: str | None) -> RunVisibility:
    return "private" if team is None else "team"


def initial_values(status: str, now: float) -> dict[str, Any]:
    return {
        "status": status,
        "attempt": 0,
        "crashes": 0,
        "rows_at_crash": 0,
        "last_batch": 0,
        "last_seq": 0,
        "settled": 0,
        "scored": 0,
        "failed": 0,
        "reward_sum": 0.0,
        "input_tokens": 0,
        "output_tokens": 0,
        "metadata": {},
        "created_at": now,
    }


# Runs that are played elsewhere


def add_upload(connection: Connection, caller: Caller, new: NewUpload) -> RunInfo:
    """The run with that name and owner: created now, or continued."""
    known = connection.execute(
        select(runs).where(runs.c.owner == caller.user, runs.c.client_run_id == new.client_run_id)
    ).one_or_none()
    if known is not None:
        return build_run_info(connection, need_visible_run(connection, caller, known.id, to_change=True))
    now = time.time()
    run_id = new_id("run")
    values = {
        **initial_values("running", now),
        "name": new.name,
        "owner": caller.user,
        "team": new.team,
        "visibility": default_visibility(new.team),
        "environment": new.environment,
        "model": new.model,
        "client_run_id": new.client_run_id,
        "settings": new.metadata.get("config") or {},
        "permissions": {},
        "metadata": dict(new.metadata),
        "row_bytes": len(msgspec.json.encode(new.metadata)),
        "planned": new.planned,
        "started_at": new.started_at or now,
    }
    connection.execute(insert(runs).values(id=run_id, kind="local", **values))
    story.append_events(connection, run_id, [RunEvent(seq=0, at=now, kind="status", status="running")])
    return build_run_info(connection, queue.find_run(connection, run_id))


def end_upload(connection: Connection, run_id: str, told: UploadEnd) -> None:
    """An upload may end more than once: a resumed run ends again."""
    now = time.time()
    why = Cause(code="internal", message=told.note) if told.note and told.status != "finished" else None
    values: dict[str, Any] = {"ended_at": now, "summary": None}
    if told.metadata:
        values["metadata"] = dict(told.metadata)
        values["planned"] = parse_count(told.metadata.get("planned"))
    if queue.find_run(connection, run_id).status != told.status:
        queue.change_status(connection, run_id, told.status, now, why, **values)
    else:
        connection.execute(update(runs).where(runs.c.id == run_id).values(values))


def parse_count(value: Any) -> int | None:
    """A number of rollouts, if the metadata has a valid one there."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if is_count else None


# Finding


def visibility_condition(caller: Caller) -> ColumnElement[bool] | None:
    """The condition for runs that are a caller's own or their teams'; None for all."""
    if caller.is_admin:
        return None
    if caller.kind == "run":
        return runs.c.id == caller.run_id
    teams = list(caller.teams)
    own = (runs.c.owner == caller.user) & or_(runs.c.team.is_(None), runs.c.team.in_(teams))
    return or_(own, runs.c.team.in_(teams) & (runs.c.visibility != "private"))


def may_change(caller: Caller, run: Row[Any]) -> bool:
    """The same of one run."""
    if caller.is_admin or caller.kind == "run":
        return caller.is_admin or bool(run.id == caller.run_id)
    if run.team is not None and run.team not in caller.teams:
        return False
    is_owner = bool(caller.user) and run.owner == caller.user
    return bool(is_owner or (run.team is not None and run.visibility != "private"))


def need_visible_run(
    connection: Connection, caller: Caller, run_id: str, *, to_change: bool = False
) -> Row[Any]:
    """A run that the caller may see, or change: its owner or, for a team's run, a current member of the
    team."""
    query = select(runs).where(runs.c.id == run_id)
    limit = visibility_condition(caller)
    row = connection.execute(query if limit is None else query.where(limit)).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no run {run_id!r} that you may see; `proctor eval list` lists yours.")
    if to_change and caller.kind != "user":
        raise ForbiddenError("A run's token cannot change runs.")
    return row


SUBMITTED = ("repository", "config_hash", "commit_sha")
"""Conditions on where a run was submitted from."""


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs to list."""

    environment: str | None = None
    status: str | None = None
    model: str | None = None
    owner: str | None = None
    team: str | None = None
    kind: str | None = None
    name: str | None = None
    repository: str | None = None
    config_hash: str | None = None
    commit_sha: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        own = [name for name in given if name in runs.c and name not in ("name", "environment")]
        found = [runs.c[name] == given[name] for name in own]
        submitted = [run_origins.c[name] == given[name] for name in SUBMITTED if name in given]
        if submitted:
            found.append(runs.c.id.in_(select(run_origins.c.run_id).where(*submitted)))
        if self.name is not None:
            found.append(runs.c.name.contains(self.name, autoescape=True))
        if self.environment is not None:
            slug, _, version = self.environment.partition("@")
            found.append(runs.c.environment == slug)
            if version:
                found.append(runs.c.version == version)
        return found


def list_runs(
    connection: Connection,
    wanted: RunQuery,
    seen: ColumnElement[bool] | None,
    before: tuple[float, str] | None,
    limit: int,
) -> list[Row[Any]]:
    """Newest first; `seen` limits them to those that a caller may see."""
    query = select(*BRIEF_COLUMNS, *NAMED_SETTINGS).where(*wanted.conditions())
    if seen is not None:
        query = query.where(seen)
    if before is not None:
        query = query.where(tuple_(runs.c.created_at, runs.c.id) < tuple_(*before))
    newest = query.order_by(runs.c.created_at.desc(), runs.c.id.desc())
    return list(connection.execute(newest.limit(limit)))


def remove_run(connection: Connection, run_id: str) -> None:
    row = queue.lock_run(connection, run_id)
    if row.kind == "hosted" and row.status not in ENDED:
        raise ConflictError(f"{run_id} is {row.status}; stop it first.", code="not_ended")
    connection.execute(delete(runs).where(runs.c.id == run_id))


def build_run_info(connection: Connection, row: Row[Any]) -> RunInfo:
    """A run as the API shows it; in lists, without settings and report."""
    return RunInfo(
        id=row.id,
        kind=row.kind,
        name=row.name,
        owner=row.owner,
        agent=read_word(row, "agent"),
        runtime="hosted" if row.kind == "hosted" else read_word(row, "runtime") or "",
        client_run_id=row.client_run_id,
        team=row.team,
        visibility=row.visibility,
        environment=row.environment,
        version=row.version,
        content_hash=row.content_hash,
        model=row.model,
        status=row.status,
        cause=None if row.cause is None else msgspec.convert(row.cause, Cause),
        progress=rows.progress_of(row),
        permissions=msgspec.convert(row.permissions or {}, Permissions),
        timeout_minutes=row.timeout_minutes,
        max_cost_usd=None if row.max_cost is None else row.max_cost / MILLION,
        cost_usd=None if row.cost is None else row.cost / MILLION,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        attempt=row.attempt,
        queue_place=queue.queue_position(connection, row),
        waiting_because=queue.explain_waiting(connection, row, time.time()),
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        last_seq=row.last_seq,
        settings=getattr(row, "settings", {}),
        resolved=read_resolved(getattr(row, "metadata", None)),
        summary=getattr(row, "summary", None),
        origin=find_origin(connection, row.id, in_full=hasattr(row, "settings")),
    )


def read_resolved(metadata: Any) -> dict[str, Any]:
    """The settings that a run used, as the process that played it wrote them."""
    resolved = metadata.get("resolved") if isinstance(metadata, dict) else None
    return resolved if isinstance(resolved, dict) else {}


def read_word(row: Row[Any], name: str) -> str | None:
    """A setting of a run that was read whole, or by its name in a list."""
    value = row.settings.get(name) if "settings" in row._fields else getattr(row, name)
    return value if isinstance(value, str) else None


def summarise(connection: Connection, run_id: str) -> tuple[int, dict[str, Any]] | None:
    """The report of a run that has ended, computed from its rows, and its last event number; None if it has a
    report, or has not ended."""
    row = queue.find_run(connection, run_id)
    if row.status not in ENDED or row.summary is not None:
        return None
    return row.last_seq, msgspec.to_builtins(rows.summarise_rows(connection, row))


def save_summary(connection: Connection, run_id: str, seq: int, summary: dict[str, Any]) -> None:
    """Stored only if nothing has happened since it was computed."""
    unchanged = (runs.c.id == run_id) & (runs.c.last_seq == seq)
    connection.execute(update(runs).where(unchanged).values(summary=summary))
