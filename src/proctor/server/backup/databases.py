"""A database in a backup: a SQLite file as it is, or the rows of each table of PostgreSQL.

Both are of one moment, and taken while others write. Knows nothing of files beside the database.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, inspect, text

from proctor.errors import ConfigError
from proctor.server.backup.archive import ArchiveWriter, BackupMember
from proctor.server.db.database import Database
from proctor.server.db.migrate import build_alembic_config
from proctor.server.db.tables import metadata
from proctor.server.private_files import FILE_MODE

FOLDER = "database"
SQLITE_MEMBER = f"{FOLDER}/proctor.db"
PART_BYTES = 8 * 2**20
"""Of a table's rows in one member."""
SNAPSHOT = text("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


def read_revision(connection: Connection) -> str:
    found = MigrationContext.configure(connection).get_current_revision()
    if found is None:
        raise ConfigError("The database is empty; there is nothing to back up.")
    return found


def check_revision(connection: Connection) -> str:
    """The revision of a database's schema, which must be this version's: rows are copied by its columns."""
    found = read_revision(connection)
    newest = ScriptDirectory.from_config(build_alembic_config(connection)).get_current_head()
    if found != newest:
        raise ConfigError(
            f"The database has the schema {found}, and this version of Proctor {newest}; back it up with the "
            f"version that the server runs."
        )
    return found


def list_columns() -> dict[str, list[str]]:
    """Of every table, in an order in which rows can be added."""
    tables = metadata.sorted_tables
    return {str(table.name): [str(column.name) for column in table.columns] for table in tables}


# SQLite


@contextmanager
def copied_sqlite(file: Path, copy: Path) -> Iterator[Path]:
    """A copy of a database that is in use, for as long as the block runs."""
    copy.unlink(missing_ok=True)
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
    try:
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
        yield copy
    finally:
        copy.unlink(missing_ok=True)


# PostgreSQL


@contextmanager
def postgres_snapshot(database: Database) -> Iterator[Connection]:
    """A connection to which the database is as it was when the block began."""
    with database.connect_alone() as connection:
        connection.execute(SNAPSHOT)
        try:
            yield connection
        finally:
            connection.execute(text("ROLLBACK"))


def write_postgres(connection: Connection, archive: ArchiveWriter) -> None:
    for table, columns in list_columns().items():
        number, size = 0, 0
        part: list[bytes] = []
        wanted = f"COPY {name_table(table, columns)} TO STDOUT"
        with driver_cursor(connection) as cursor, cursor.copy(wanted) as rows:
            for block in rows:
                part.append(bytes(block))
                size += len(block)
                if size >= PART_BYTES:
                    archive.add(name_part(table, number), b"".join(part))
                    number, part, size = number + 1, [], 0
        archive.add(name_part(table, number), b"".join(part))


def name_part(table: str, number: int) -> str:
    return f"{FOLDER}/{table}/{number:06}"


class PostgresLoader:
    """Adds the rows of a backup to an empty database, in one transaction of the caller's."""

    def __init__(self, connection: Connection, tables: dict[str, list[str]]) -> None:
        self._connection = connection
        self._tables = tables
        self._table = ""
        self._copying: Any = None
        self._write: Callable[[bytes], None] = lambda _: None

    def __enter__(self) -> PostgresLoader:
        return self

    def __exit__(self, *failure: Any) -> None:
        """Wait until the rows of the current table are in, or give them up."""
        copying, self._copying = self._copying, None
        if copying is not None:
            copying.__exit__(*failure)

    def add(self, member: BackupMember) -> None:
        table = member.name.split("/")[1]
        if table not in self._tables:
            raise ConfigError(f"The backup has rows of {table!r}, which it does not describe.")
        if table != self._table:
            self.__exit__(None, None, None)
            self._begin(table)
        for block in member.blocks:
            self._write(block)

    def _begin(self, table: str) -> None:
        cursor: Any = self._connection.connection.cursor()
        self._copying = cursor.copy(f"COPY {name_table(table, self._tables[table])} FROM STDIN")
        self._table, self._write = table, self._copying.__enter__().write


@contextmanager
def driver_cursor(connection: Connection) -> Iterator[Any]:
    with closing(connection.connection.cursor()) as cursor:
        yield cursor


def name_table(table: str, columns: list[str]) -> str:
    return f"{quote(table)} ({', '.join(map(quote, columns))})"


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def check_empty(connection: Connection) -> None:
    if inspect(connection).get_table_names():
        raise ConfigError(
            "The database to restore into has tables; name an empty one with --database, such as "
            "`createdb` makes."
        )


def create_schema(connection: Connection, revision: str) -> None:
    """The tables as they were in the server that was backed up; its next start brings them up to date."""
    try:
        command.upgrade(build_alembic_config(connection), revision)
    except CommandError as error:
        raise ConfigError(
            f"The backup was made by a newer Proctor, whose schema {revision} this version does not know; "
            f"restore it with that version or a later one."
        ) from error
