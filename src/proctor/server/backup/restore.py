"""Make a server's data folder and database from a backup, all of it or nothing.

Everything is written beside its final place, checked against the archive's seal, and only then put there.
Knows nothing of the command line.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from proctor.errors import ConfigError, describe_os_error
from proctor.server.backup.archive import (
    ArchiveReader,
    BackupHead,
    BackupMember,
    reading_archive,
    sync_folder,
)
from proctor.server.backup.databases import FOLDER as DATABASE_FOLDER
from proctor.server.backup.databases import SQLITE_MEMBER, PostgresLoader, check_empty, create_schema
from proctor.server.backup.files import FOLDER as FILES_FOLDER
from proctor.server.backup.files import KEY_MEMBER, OBJECTS_MEMBER, read_file
from proctor.server.db.availability import describe_database_error
from proctor.server.db.database import Database
from proctor.server.private_files import make_private_folder
from proctor.server.secrets.vault import KEY_FILE

SQLITE_FILE = "proctor.db"
SPARE_BYTES = 256 * 2**20
"""What a restore leaves free on the disk, for everything else on the machine."""


class Restored(msgspec.Struct, frozen=True):
    head: BackupHead
    files: int


def restore(file: BinaryIO, name: str, data: Path, database: Database | None) -> Restored:
    """`database` is an empty PostgreSQL, for a backup of one."""
    check_unused(data)
    with reading_archive(file, name) as archive:
        head = archive.read_head()
        check_kind(head, database)
        with staging(data) as folder:
            if database is None:
                return Restored(head, place_members(archive, folder, None))
            return restore_postgres(archive, head, folder, database)


def restore_postgres(archive: ArchiveReader, head: BackupHead, folder: Path, database: Database) -> Restored:
    def load(connection: Connection) -> int:
        check_empty(connection)
        create_schema(connection, head.revision)
        with PostgresLoader(connection, head.tables) as loader:
            return place_members(archive, folder, loader)

    try:
        return Restored(head, database.write_now(load))
    except (SQLAlchemyError, psycopg.Error) as error:
        where = database.url.render_as_string(hide_password=True)
        raise ConfigError(f"Cannot restore into {where}: {describe_database_error(error)}") from error


def check_unused(data: Path) -> None:
    try:
        is_used = data.exists() and any(data.iterdir())
    except OSError as error:
        raise ConfigError(f"Cannot restore into {data}: {describe_os_error(error)}.") from error
    if is_used:
        raise ConfigError(f"{data} is not empty; restore into a new folder with --data.")


def check_kind(head: BackupHead, database: Database | None) -> None:
    if head.database == "sqlite" and database is not None:
        raise ConfigError("The backup holds a SQLite database, which goes to --data; leave out --database.")
    if head.database != "sqlite" and (database is None or database.is_sqlite):
        raise ConfigError(
            "The backup holds the rows of a PostgreSQL database; name an empty one with "
            "--database postgresql://HOST/NAME."
        )


@contextmanager
def staging(data: Path) -> Iterator[Path]:
    """A folder that takes the place of `data` if the block succeeds, and is removed if it does not."""
    folder = data.with_name(f"{data.name}.restoring")
    try:
        shutil.rmtree(folder, ignore_errors=True)  # of a restore that was killed
        make_private_folder(folder)
        yield folder
        sync_folder(folder)
        if data.exists():
            data.rmdir()  # empty, as was checked
        folder.rename(data)
        sync_folder(data.parent)
    except OSError as error:
        raise ConfigError(f"Cannot restore into {data}: {describe_os_error(error)}.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place_members(archive: ArchiveReader, folder: Path, loader: PostgresLoader | None) -> int:
    """Returns how many files there were; raises unless the archive is whole."""
    count = 0
    for member in archive.members():
        target = find_target(member, folder)
        if target is not None:
            check_space(folder, member.size)
            read_file(member, target)
            count += member.name.startswith(f"{FILES_FOLDER}/")
        elif loader is not None and member.name.startswith(f"{DATABASE_FOLDER}/"):
            loader.add(member)
        else:
            raise ConfigError(f"The backup has a member {member.name!r}, which this version does not know.")
    return count


def check_space(folder: Path, size: int) -> None:
    """Refuse a file that would fill the disk: an archive may hold a thousand times its own size."""
    free = shutil.disk_usage(folder).free
    if size + SPARE_BYTES > free:
        raise ConfigError(
            f"The backup has a file of {size // 2**20:,} MB, and its disk has {free // 2**20:,} MB left, of "
            f"which {SPARE_BYTES // 2**20:,} MB are to stay free; nothing was restored. Restore to a larger "
            f"disk with --data."
        )


def find_target(member: BackupMember, folder: Path) -> Path | None:
    """Where a member goes that is a file."""
    if member.name == SQLITE_MEMBER:
        return folder / SQLITE_FILE
    if member.name == KEY_MEMBER:
        return folder / KEY_FILE
    if member.name == OBJECTS_MEMBER:
        return folder / OBJECTS_MEMBER
    if member.name.startswith(f"{FILES_FOLDER}/"):
        return folder / member.name.removeprefix(f"{FILES_FOLDER}/")
    return None
