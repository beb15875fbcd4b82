"""Locks on things that have no row, held until a transaction ends. SQLite has one writer, which needs none.

Knows nothing of what is locked.
"""

from __future__ import annotations

from enum import IntEnum

from sqlalchemy import Connection, text


class Lock(IntEnum):
    """The same for all servers on one database, and presumably unused by anything else there."""

    MIGRATION = 7_264_110_395
    KEY = 7_264_110_396
    FIRST_START = 7_264_110_398
    CLAIMS = 7_264_110_399


def lock(connection: Connection, what: Lock) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": int(what)})


def lock_text(connection: Connection, name: str) -> None:
    """Lock whatever goes by this name; two names may share a lock, which costs only time."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})
