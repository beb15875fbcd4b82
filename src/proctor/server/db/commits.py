"""Transactions on PostgreSQL that take effect once, whatever happens to their connection.

A connection that breaks during a commit leaves open whether the transaction was committed. Each transaction
that changed something therefore also changes a row of its connection's, by which that is found out once the
database is back. Knows nothing of threads or waiting.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import msgspec
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, OperationalError

from proctor.server.db.availability import is_connection_lost

T = TypeVar("T")

MARK = text(
    "INSERT INTO commit_marks (id, number, at) "
    "SELECT CAST(:id AS TEXT), CAST(:number AS BIGINT), CAST(:at AS DOUBLE PRECISION) "
    "WHERE pg_current_xact_id_if_assigned() IS NOT NULL "
    "ON CONFLICT (id) DO UPDATE SET number = excluded.number, at = excluded.at"
)
"""Does nothing in a transaction that changed nothing."""
TOUCH = text(
    "INSERT INTO commit_marks (id, number, at) "
    "VALUES (CAST(:id AS TEXT), 0, CAST(:at AS DOUBLE PRECISION)) "
    "ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING number"
)
LOCK_TIMEOUT = text("SET LOCAL lock_timeout = '5s'")


class LostConnectionError(Exception):
    """The connection of a transaction broke; the caller can try again."""


class CommitMark(msgspec.Struct, frozen=True):
    """The last transaction of a connection."""

    id: str
    """The connection's."""
    number: int


class SingleCommit(Generic[T]):
    """A transaction that is committed once, however often it is called until it returns."""

    def __init__(self, engine: Engine, work: Callable[[Connection], T]) -> None:
        self._engine = engine
        self._work = work
        self._uncertain: tuple[CommitMark, T] | None = None
        """A commit that was not acknowledged, and what it would have returned."""

    def __call__(self) -> T:
        if self._uncertain is not None:
            last, result = self._uncertain
            if is_committed(self._engine, last):
                return result
        with open_connection(self._engine) as connection:
            transaction = connection.begin()
            made = self._work(connection)
            mark = mark_commit(connection)
            self._uncertain = None if mark is None else (mark, made)
            transaction.commit()
            return made


def is_committed(engine: Engine, mark: CommitMark) -> bool:
    """Waits for a session that is still committing: its mark is locked until then."""
    with open_connection(engine) as connection, connection.begin():
        connection.execute(LOCK_TIMEOUT)
        try:
            found = connection.execute(TOUCH, {"id": mark.id, "at": time.time()})
        except OperationalError as error:
            raise LostConnectionError("the session of the commit is still open") from error
        return bool(found.scalar_one() == mark.number)


def mark_commit(connection: Connection) -> CommitMark | None:
    """Mark the transaction of this connection; None if it changed nothing."""
    mark = CommitMark(connection.info.setdefault("mark", secrets.token_hex(10)), secrets.randbits(62))
    values = {"id": mark.id, "number": mark.number, "at": time.time()}
    return mark if connection.execute(MARK, values).rowcount else None


@contextmanager
def open_connection(engine: Engine) -> Iterator[Connection]:
    """A connection; what fails because it breaks raises LostConnectionError."""
    try:
        with engine.connect() as connection:
            try:
                yield connection
            except Exception as error:
                if connection.invalidated:  # whatever was made of the error since
                    raise LostConnectionError(str(error)) from error
                raise
    except DBAPIError as error:
        if is_connection_lost(error):
            raise LostConnectionError(str(error)) from error
        raise
