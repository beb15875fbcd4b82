"""Comments on runs in the database. A deleted one leaves its place, so that links to it say what happened.

Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, tuple_, update

from proctor.api.comments import (
    MOST_COMMENTS,
    MOST_COMMENTS_BY_ONE,
    NewComment,
    RolloutPlace,
    RunComment,
)
from proctor.api.common import new_id
from proctor.server.db.structs import struct_from_row
from proctor.server.db.tables import run_comments
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, ForbiddenError, NotFoundError, QuotaError
from proctor.server.runs import edits, queue

CommentCursor = tuple[float, str]
"""When a comment was written, and its id: where a page of comments continues."""


def add_comment(connection: Connection, run_id: str, caller: Caller, new: NewComment, now: float) -> str:
    queue.lock_run(connection, run_id)
    check_room(connection, run_id, caller.user)
    comment_id = new_id("comment")
    rollout = new.rollout
    connection.execute(
        insert(run_comments).values(
            id=comment_id,
            run_id=run_id,
            task_key=None if rollout is None else rollout.key,
            number=None if rollout is None else rollout.number,
            step=None if rollout is None else rollout.step,
            author=caller.user,
            text=new.text,
            created_at=now,
        )
    )
    edits.add_revision(connection, run_id, now)
    return comment_id


def check_room(connection: Connection, run_id: str, author: str) -> None:
    of_run = select(func.count()).where(run_comments.c.run_id == run_id)
    if connection.execute(of_run).scalar_one() >= MOST_COMMENTS:
        raise QuotaError(
            f"{run_id} has {MOST_COMMENTS:,} comments, which is the limit of a run.", limit=MOST_COMMENTS
        )
    if connection.execute(of_run.where(run_comments.c.author == author)).scalar_one() >= MOST_COMMENTS_BY_ONE:
        raise QuotaError(
            f"{author} has written {MOST_COMMENTS_BY_ONE} comments on {run_id}, which is the limit of one "
            "person on one run.",
            limit=MOST_COMMENTS_BY_ONE,
        )


def edit_comment(
    connection: Connection, run_id: str, comment_id: str, caller: Caller, text: str, now: float
) -> None:
    comment = need_comment(connection, run_id, comment_id)
    if comment.author != caller.user:
        raise ForbiddenError(f"Only {comment.author}, who wrote it, may edit this comment.")
    refuse_deleted(comment)
    if text != comment.text:
        change = {"text": text, "edited_at": now}
        connection.execute(update(run_comments).where(run_comments.c.id == comment_id).values(change))
        edits.add_revision(connection, run_id, now)


def delete_comment(
    connection: Connection, run_id: str, comment_id: str, caller: Caller, *, may_change_run: bool, now: float
) -> None:
    comment = need_comment(connection, run_id, comment_id)
    if comment.author != caller.user and not may_change_run:
        raise ForbiddenError(
            f"Only {comment.author}, who wrote it, and those who may change the run may delete this comment."
        )
    if comment.deleted_at is None:
        change = {"text": "", "deleted_at": now, "deleted_by": caller.user}
        connection.execute(update(run_comments).where(run_comments.c.id == comment_id).values(change))
        edits.add_revision(connection, run_id, now)


def need_comment(connection: Connection, run_id: str, comment_id: str) -> Row[Any]:
    """A comment of the run, which is locked: comments change one after the other."""
    queue.lock_run(connection, run_id)
    query = select(run_comments).where(run_comments.c.id == comment_id, run_comments.c.run_id == run_id)
    comment = connection.execute(query).one_or_none()
    if comment is None:
        raise NotFoundError(f"{run_id} has no comment {comment_id!r}.")
    return comment


def refuse_deleted(comment: Row[Any]) -> None:
    if comment.deleted_at is not None:
        raise ConflictError(
            f"{comment.deleted_by} deleted this comment meanwhile; write a new one.", code="changed_meanwhile"
        )


def list_comments(
    connection: Connection,
    run_id: str,
    after: CommentCursor | None,
    limit: int,
    rollout: tuple[str, int] | None = None,
) -> Sequence[Row[Any]]:
    """Comments of a run, or of one of its rollouts, the oldest first."""
    order = (run_comments.c.created_at, run_comments.c.id)
    query = select(run_comments).where(run_comments.c.run_id == run_id).order_by(*order).limit(limit)
    if after is not None:
        query = query.where(tuple_(*order) > after)
    if rollout is not None:
        query = query.where(run_comments.c.task_key == rollout[0], run_comments.c.number == rollout[1])
    return connection.execute(query).all()


def read_comment(connection: Connection, comment_id: str) -> Row[Any]:
    return connection.execute(select(run_comments).where(run_comments.c.id == comment_id)).one()


def describe_comment(row: Row[Any], caller: Caller, *, may_change_run: bool) -> RunComment:
    is_own = row.author == caller.user and not caller.is_anonymous
    is_there = row.deleted_at is None
    return struct_from_row(
        RunComment,
        row,
        rollout=None
        if row.task_key is None
        else RolloutPlace(key=row.task_key, number=row.number, step=row.step),
        may_edit=is_there and is_own,
        may_delete=is_there and (is_own or may_change_run),
    )


def cursor_of(comment: RunComment) -> CommentCursor:
    return (comment.created_at, comment.id)
