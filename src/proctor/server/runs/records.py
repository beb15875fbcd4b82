"""Runs in the database: added, found by those who may see them, listed, described. Knows nothing of HTTP."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, delete, insert, or_, select, update

from proctor.api.bounds import LONGEST_NAME
from proctor.api.common import new_id
from proctor.api.runs import (
    LONGEST_TAG,
    MOST_TAGS,
    Cause,
    NewUpload,
    Permissions,
    RunEvent,
    RunInfo,
    RunOrigin,
    RunScore,
    RunVisibility,
    UploadEnd,
)
from proctor.reading.scores import score_of_summary
from proctor.report.summary import Summary
from proctor.run import ENDED
from proctor.server.announcements import DeletedRun, announce_deleted_run
from proctor.server.db.tables import runs, versions
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, ForbiddenError, NotFoundError
from proctor.server.runs import entries, event_log, queue, rows
from proctor.server.sources.origins import find_origin
from proctor.store.folder import find_rescored_run

MILLION = 1_000_000
LONG_COLUMNS = ("metadata", "settings", "summary", "note")
BRIEF_COLUMNS = [column for column in runs.c if column.name not in LONG_COLUMNS]
"""The columns of a list."""
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
    suite: str | None = None


def add_run(connection: Connection, asked: Submission, now: float) -> str:
    run_id = new_id("run")
    values = {**msgspec.structs.asdict(asked), "permissions": msgspec.to_builtins(asked.permissions)}
    values["visibility"] = default_visibility(asked.team)
    connection.execute(
        insert(runs).values(id=run_id, kind="hosted", **values, **initial_values("pending", now))
    )
    event_log.append_events(connection, run_id, [RunEvent(seq=0, at=now, kind="status", status="pending")])
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
        **metadata_values(new.metadata),
        "row_bytes": len(msgspec.json.encode(new.metadata)),
        "planned": new.planned,
        "started_at": new.started_at or now,
    }
    connection.execute(insert(runs).values(id=run_id, kind="local", **values))
    event_log.append_events(connection, run_id, [RunEvent(seq=0, at=now, kind="status", status="running")])
    return build_run_info(connection, queue.find_run(connection, run_id))


def end_upload(connection: Connection, run_id: str, end: UploadEnd) -> None:
    """An upload may end more than once: a resumed run ends again."""
    now = time.time()
    why = Cause(code="internal", message=end.note) if end.note and end.status != "finished" else None
    values: dict[str, Any] = {"ended_at": now, "summary": None, "score": None}
    row = queue.find_run(connection, run_id)
    if end.metadata:
        values |= metadata_values(end.metadata, row)
        values["planned"] = parse_count(end.metadata.get("planned"))
    if row.status != end.status:
        queue.change_status(connection, run_id, end.status, now, why, **values)
    else:
        connection.execute(update(runs).where(runs.c.id == run_id).values(values))


def metadata_values(metadata: Mapping[str, Any], known: Row[Any] | None = None) -> dict[str, Any]:
    """A run's metadata.json as columns: with what lists show of it, should it have that. Tags that people
    have changed since stay."""
    values: dict[str, Any] = {"metadata": dict(metadata)}
    suite, tags = metadata.get("suite"), metadata.get("tags")
    if isinstance(suite, str) and suite:
        values["suite"] = suite[:LONGEST_NAME]
    is_edited = known is not None and "tags" in (known.editors or {})
    if isinstance(tags, list) and tags and not is_edited:
        values["tags"] = [tag[:LONGEST_TAG] for tag in tags[:MOST_TAGS] if isinstance(tag, str) and tag]
    if source := find_rescored_run(metadata):
        values["rescored_from"] = source[:LONGEST_NAME]
    return values


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


def may_change(caller: Caller, run: Row[Any] | DeletedRun) -> bool:
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


def remove_run(connection: Connection, run_id: str) -> None:
    row = queue.lock_run(connection, run_id)
    if row.kind == "hosted" and row.status not in ENDED:
        raise ConflictError(f"{run_id} is {row.status}; stop it first.", code="not_ended")
    connection.execute(delete(runs).where(runs.c.id == run_id))
    announce_deleted_run(connection, row)


def build_run_info(connection: Connection, row: Row[Any]) -> RunInfo:
    """A run as the API shows it."""
    origin = find_origin(connection, row.id)
    return describe_row(row, origin, QueueState.of(connection, [row]))


class QueueState(msgspec.Struct, frozen=True):
    """What to report about runs that wait."""

    places: Mapping[str, int] = {}
    """How many runs are before each."""
    waiting_because: str = ""

    @staticmethod
    def of(connection: Connection, rows: Sequence[Row[Any]]) -> QueueState:
        pending = [row for row in rows if row.status == "pending"]
        if not pending:
            return QueueState()
        times = sorted(
            connection.execute(select(runs.c.created_at).where(runs.c.status == "pending")).scalars()
        )
        places = {row.id: bisect_left(times, row.created_at) for row in pending}
        return QueueState(places, queue.explain_waiting(connection, pending[0], time.time()))


def describe_row(row: Row[Any], origin: RunOrigin | None, waiting: QueueState) -> RunInfo:
    """A run by its row; in lists, without settings and report."""
    score = None if row.score is None else msgspec.convert(row.score, RunScore)
    progress = rows.progress_of(row)
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
        progress=progress if score is None else msgspec.structs.replace(progress, mean_reward=score.mean),
        score=score,
        suite=row.suite,
        tags=row.tags or [],
        note=getattr(row, "note", ""),
        revision=row.revision,
        may_change=True,
        rescored_from=row.rescored_from,
        permissions=msgspec.convert(row.permissions or {}, Permissions),
        timeout_minutes=row.timeout_minutes,
        max_cost_usd=None if row.max_cost is None else row.max_cost / MILLION,
        cost_usd=None if row.cost is None else row.cost / MILLION,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        attempt=row.attempt,
        queue_place=waiting.places.get(row.id),
        waiting_because=waiting.waiting_because if row.id in waiting.places else "",
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        last_seq=row.last_seq,
        settings=getattr(row, "settings", {}),
        resolved=read_resolved(getattr(row, "metadata", None)),
        summary=getattr(row, "summary", None),
        origin=origin,
    )


def read_resolved(metadata: Any) -> dict[str, Any]:
    """The settings that a run used, as the process that played it wrote them."""
    resolved = metadata.get("resolved") if isinstance(metadata, dict) else None
    return resolved if isinstance(resolved, dict) else {}


def with_public_address(row: Row[Any], server_url: str) -> Mapping[str, Any]:
    """The metadata of a run; of a hosted one with an address that is also valid outside its sandbox."""
    metadata: Mapping[str, Any] = row.metadata
    if row.kind != "hosted" or "base_url" not in metadata:
        return metadata
    address = row.settings.get("api_base_url") or f"{server_url}/v1"
    config = metadata.get("config")
    if isinstance(config, Mapping) and "api_base_url" in config:
        metadata = {**metadata, "config": {**config, "api_base_url": address}}
    return {**metadata, "base_url": address}


def read_word(row: Row[Any], name: str) -> str | None:
    """A setting of a run that was read whole, or by its name in a list."""
    value = row.settings.get(name) if "settings" in row._fields else getattr(row, name)
    return value if isinstance(value, str) else None


def summarize(connection: Connection, run_id: str) -> tuple[int, Summary] | None:
    """The report of a run that has ended, computed from its rows, and its last event number; None if it has a
    report, or has not ended."""
    row = queue.find_run(connection, run_id)
    if row.status not in ENDED or (row.summary is not None and row.score is not None):
        return None
    return row.last_seq, entries.summarize_rows(connection, row)


def list_unscored(connection: Connection) -> list[str]:
    """The runs that have ended and whose score lists do not have yet, the newest first."""
    query = select(runs.c.id).where(runs.c.status.in_(ENDED), runs.c.score.is_(None))
    return list(connection.execute(query.order_by(runs.c.created_at.desc())).scalars())


def save_summary(connection: Connection, run_id: str, seq: int, summary: Summary) -> None:
    """Stored only if nothing has happened since it was computed."""
    unchanged = (runs.c.id == run_id) & (runs.c.last_seq == seq)
    score = msgspec.to_builtins(score_of_summary(summary))
    connection.execute(
        update(runs).where(unchanged).values(summary=msgspec.to_builtins(summary), score=score)
    )


def has_wheel(connection: Connection, sha256: str, run_id: str | None) -> bool:
    """Whether this is the wheel of a version; with a run, of the one that it plays."""
    query = select(versions.c.id).where(versions.c.wheel_sha256 == sha256)
    if run_id is not None:
        query = query.join(runs, runs.c.version_id == versions.c.id).where(runs.c.id == run_id)
    return connection.execute(query.limit(1)).first() is not None
