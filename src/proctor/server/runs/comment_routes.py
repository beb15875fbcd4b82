"""What people write about runs, over HTTP: names, notes and tags, comments on runs and rollouts."""

from __future__ import annotations

import time

from litestar import Router, delete, get, patch, post
from litestar.params import FromPath, FromQuery, JSONBody
from sqlalchemy import Connection

from proctor.api.comments import CommentEdit, NewComment, RunComment
from proctor.api.common import Page
from proctor.api.runs import RunEdit, RunInfo
from proctor.reading.rollout_handlers import open_rollout
from proctor.server.audit.changes import AuditDependency
from proctor.server.names import LINES, check_text
from proctor.server.paging import build_page, check_limit, decode_cursor
from proctor.server.people.tokens import Caller
from proctor.server.problems import ForbiddenError, InvalidError
from proctor.server.requests import CallerDependency, HttpRequest, PlatformDependency, run_idempotent
from proctor.server.runs import comments, edits, queue, records, sharing
from proctor.server.runs.routes import find_link

JOINERS = "\u200c\u200d"


@patch("/runs/{run_id:str}", summary="Rename a run, change its note and its tags")
async def edit_run(
    run_id: FromPath[str],
    data: JSONBody[RunEdit],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> RunInfo:
    caller.need("runs:write")
    edits.check_edit(data)

    def work(connection: Connection, run_id: str) -> RunInfo:
        sharing.need_changeable_run(connection, caller, run_id)
        edits.edit_run(connection, run_id, data, caller.user, time.time())
        return records.build_run_info(connection, queue.find_run(connection, run_id))

    edited = audit.of(caller, "run.edit", run_id, work, {"changed": name_edited(data)})
    return await platform.runs.change(edited, run_id)


def name_edited(data: RunEdit) -> list[str]:
    """What an edit is about; the texts themselves show in the run."""
    named = {"name": data.name, "note": data.note, "tags": data.add_tags or data.remove_tags or None}
    return [name for name, value in named.items() if value is not None]


@get("/runs/{run_id:str}/comments", summary="Comments on a run and its rollouts, the oldest first")
async def list_run_comments(
    run_id: FromPath[str],
    request: HttpRequest,
    caller: CallerDependency,
    platform: PlatformDependency,
    limit: FromQuery[int] = 100,
    cursor: FromQuery[str | None] = None,
    key: FromQuery[str | None] = None,
    number: FromQuery[int | None] = None,
    link: FromQuery[str | None] = None,
) -> Page[RunComment]:
    most = check_limit(limit)
    after = decode_cursor(cursor, float, str)
    if (key is None) != (number is None):
        raise InvalidError("A rollout has a key and a number; send both or neither.", field="number")
    rollout = None if key is None or number is None else (key, number)
    shown = find_link(request, link)
    reader = sharing.as_reader(caller, shown)

    def work(connection: Connection) -> Page[RunComment]:
        _, access = sharing.need_readable_run(connection, reader, run_id, shown)
        found = comments.list_comments(connection, run_id, after, most + 1, rollout)
        described = [
            comments.describe_comment(row, reader, may_change_run=may_moderate(reader, access))
            for row in found
        ]
        return build_page(described, most, comments.cursor_of)

    return await platform.database.read(work)


def may_moderate(caller: Caller, access: sharing.Access) -> bool:
    return access == "owner" and caller.kind == "user"


def read_comment(
    connection: Connection, comment_id: str, caller: Caller, access: sharing.Access
) -> RunComment:
    row = comments.read_comment(connection, comment_id)
    return comments.describe_comment(row, caller, may_change_run=may_moderate(caller, access))


def need_commenter(caller: Caller) -> None:
    caller.need("runs:read")
    caller.need("runs:write")
    if caller.kind != "user":
        raise ForbiddenError("Only people comment on runs.")


@post("/runs/{run_id:str}/comments", summary="Comment on a run, a rollout, or a step of one")
async def add_run_comment(
    run_id: FromPath[str],
    request: HttpRequest,
    data: JSONBody[NewComment],
    caller: CallerDependency,
    platform: PlatformDependency,
    link: FromQuery[str | None] = None,
) -> RunComment:
    need_commenter(caller)
    check_comment(data.text)
    shown = find_link(request, link)
    if data.rollout is not None:  # which also refuses callers that may not read the run
        library = platform.reading.library(caller, shown)
        await open_rollout(library, run_id, data.rollout.key, data.rollout.number)

    def work(connection: Connection) -> RunComment:
        _, access = sharing.need_readable_run(connection, caller, run_id, shown)
        comment_id = comments.add_comment(connection, run_id, caller, data, time.time())
        return read_comment(connection, comment_id, caller, access)

    added = await run_idempotent(request, platform, caller, work, RunComment)
    platform.notifier.notify("run", run_id)
    return added


@patch("/runs/{run_id:str}/comments/{comment_id:str}", summary="Edit a comment of yours")
async def edit_run_comment(
    run_id: FromPath[str],
    comment_id: FromPath[str],
    request: HttpRequest,
    data: JSONBody[CommentEdit],
    caller: CallerDependency,
    platform: PlatformDependency,
    link: FromQuery[str | None] = None,
) -> RunComment:
    need_commenter(caller)
    check_comment(data.text)
    shown = find_link(request, link)

    def work(connection: Connection, run_id: str) -> RunComment:
        _, access = sharing.need_readable_run(connection, caller, run_id, shown)
        comments.edit_comment(connection, run_id, comment_id, caller, data.text, time.time())
        return read_comment(connection, comment_id, caller, access)

    return await platform.runs.change(work, run_id)


@delete("/runs/{run_id:str}/comments/{comment_id:str}", summary="Delete a comment; its place stays")
async def delete_run_comment(
    run_id: FromPath[str],
    comment_id: FromPath[str],
    request: HttpRequest,
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
    link: FromQuery[str | None] = None,
) -> None:
    need_commenter(caller)
    shown = find_link(request, link)

    def work(connection: Connection, run_id: str) -> None:
        _, access = sharing.need_readable_run(connection, caller, run_id, shown)
        may_change = may_moderate(caller, access)
        comments.delete_comment(
            connection, run_id, comment_id, caller, may_change_run=may_change, now=time.time()
        )

    deleted = audit.of(caller, "comment.delete", run_id, work, {"comment": comment_id})
    await platform.runs.change(deleted, run_id)


def check_comment(text: str) -> None:
    """Emoji and some scripts have joiners; nothing else that cannot be seen is let in."""
    if not text.strip():
        raise InvalidError("A comment needs some text.", field="text")
    check_text(text, "text", longest=len(text), allowed=f"{LINES}{JOINERS}")


router = Router(
    "",
    route_handlers=[edit_run, list_run_comments, add_run_comment, edit_run_comment, delete_run_comment],
    tags=["runs"],
)
