"""Give the space of deleted rows back to the file system; SQLite keeps it otherwise.

PostgreSQL does this by itself. Knows nothing of what was deleted.
"""

from __future__ import annotations

import sqlite3

from proctor.support.logs import log

INCREMENTAL = 2
PAGES_AT_ONCE = 2_000
"""A few megabytes: other writers wait for no more than this."""
MOST_CONVERTED_BYTES = 2 * 2**30
"""A larger file of an earlier version is not rewritten: the server would be away for too long."""


def read_pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def prepare(connection: sqlite3.Connection) -> None:
    """Let a file of an earlier version shrink from now on, which takes rewriting it once."""
    if read_pragma(connection, "auto_vacuum") == INCREMENTAL:
        return
    size = read_pragma(connection, "page_count") * read_pragma(connection, "page_size")
    if size > MOST_CONVERTED_BYTES:
        log.warning(
            "the space of deleted runs is used again, but not given back: while the server is stopped, "
            "run sqlite3 on its database with: PRAGMA auto_vacuum = INCREMENTAL; VACUUM;"
        )
        return
    try:
        connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
        connection.execute("VACUUM")
    except sqlite3.Error as error:  # such as a full disk
        log.warning("the space of deleted runs cannot be given back: %s", error)


def shrink(connection: sqlite3.Connection) -> bool:
    """Give some free pages back; False if none are left."""
    before = read_pragma(connection, "freelist_count")
    if not before or read_pragma(connection, "auto_vacuum") != INCREMENTAL:
        return False
    connection.execute(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})").fetchall()
    if 0 < read_pragma(connection, "freelist_count") < before:
        return True
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return False
