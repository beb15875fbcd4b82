"""Back up a server while it runs: the database as of one moment, then the files that its rows refer to.

Files are written before the rows that name them, so a copy of the files that is made after that of the rows
lacks none, except those that were deleted in between. Knows nothing of the command line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import msgspec

from proctor import __version__
from proctor.errors import ConfigError
from proctor.server.backup.archive import ArchiveWriter, BackupHead, writing_archive
from proctor.server.backup.databases import (
    SQLITE_MEMBER,
    check_revision,
    copied_sqlite,
    list_columns,
    postgres_snapshot,
    read_revision,
    write_postgres,
)
from proctor.server.backup.files import KEY_MEMBER, ListedObject, write_files, write_objects
from proctor.server.db.database import Database
from proctor.server.secrets.key_lock import KeyLock
from proctor.server.secrets.vault import key_file
from proctor.server.storage.folder import ADDRESS as FOLDER
from proctor.server.storage.opening import find_recorded
from proctor.server.storage.records import list_files

COPY_FILE = "backup-copy.db"
"""In the data folder while a backup runs; one that was killed leaves it to the next, which replaces it."""


class BackupDone(msgspec.Struct, frozen=True):
    files: int
    size: int
    """Bytes before compression."""


def back_up(
    data: Path, database: Database, out: BinaryIO, *, with_key: bool, files: Path | None = None
) -> BackupDone:
    """Write an archive; it is whole when this returns. `files` is the folder of pushed files, if it is not
    the data folder. Objects of an object store are listed, and stay there."""
    lock = KeyLock(data, database, alone=False)  # a key that changes now would not open what is copied
    try:
        return write_archive(data, database, out, with_key=with_key, files=files or data)
    finally:
        lock.close()


def write_archive(
    data: Path, database: Database, out: BinaryIO, *, with_key: bool, files: Path
) -> BackupDone:
    storage, _ = database.read_now(find_recorded)
    with ExitStack() as opened:
        if database.is_sqlite:
            source = Path(database.url.database or "")
            copy = opened.enter_context(copied_sqlite(source, data / COPY_FILE))
            revision = database.read_now(read_revision)

            def write_database(archive: ArchiveWriter) -> None:
                with copy.open("rb") as file:
                    archive.add_file(SQLITE_MEMBER, file, copy.stat().st_size)
        else:
            connection = opened.enter_context(postgres_snapshot(database))
            revision = check_revision(connection)

            def write_database(archive: ArchiveWriter) -> None:
                write_postgres(connection, archive)

        head = BackupHead(
            proctor=__version__,
            created_at=time.time(),
            database="sqlite" if database.is_sqlite else "postgresql",
            revision=revision,
            tables={} if database.is_sqlite else list_columns(),
            has_key=with_key,
            storage=storage,
        )
        with writing_archive(out, head) as archive:
            write_database(archive)
            count = write_files(data, files, archive)
            if storage != FOLDER:
                write_objects(list_objects(database), archive)
            if with_key:
                archive.add(KEY_MEMBER, read_key_file(data))
            return BackupDone(count, archive.seal().size)


def list_objects(database: Database) -> Iterator[ListedObject]:
    """What the rows refer to; listed after they were copied, so that none is missing."""
    after = ""
    while rows := database.read_now(list_files, after):
        yield from (ListedObject(row.key, row.size) for row in rows)
        after = rows[-1].sha256


def read_key_file(data: Path) -> bytes:
    file = key_file(data, os.environ)
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read the key {file}: {error.strerror}; leave out --with-key.") from error
