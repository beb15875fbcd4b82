"""Run one statement for each of many rows: it is compiled once, and the driver takes the rows as they are.

SQLAlchemy prepares every value of every row on its own, which costs as much as the database's own work. Only
for values that the drivers know: texts, numbers and truth values. Knows nothing of what the rows mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Delete, Insert
from sqlalchemy.dialects import sqlite


class ManyRows:
    """A statement whose parameters are taken from rows; an insert takes every column of its table."""

    def __init__(self, statement: Insert | Delete) -> None:
        self._statement = statement
        self._compiled: dict[str, str] = {}
        """By the name of the database's kind."""

    def __call__(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        kind = connection.dialect.name
        if kind not in self._compiled:
            dialect = sqlite.dialect(paramstyle="named") if kind == "sqlite" else connection.dialect
            self._compiled[kind] = str(self._statement.compile(dialect=dialect))
        connection.exec_driver_sql(self._compiled[kind], rows)
