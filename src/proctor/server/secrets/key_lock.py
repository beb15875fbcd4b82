"""Lock the server's key: shared between servers, exclusive for a rotation or a move of its files.

A lock on a file in the data folder, and one in PostgreSQL, for servers on one database with folders of their
own. Both end with the process that holds them, however it ends. Knows nothing of keys.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from sqlalchemy import Connection, text

from proctor.errors import ConfigError
from proctor.server.db.database import Database
from proctor.server.db.locks import Lock

LOCK_FILE = "key.lock"
BEING_ROTATED = "The server's key is being rotated; start the server once that is done."
IN_USE = "A server is running on this database; stop every server that uses it, then try again."


class KeyLock:
    """Held until it is closed."""

    def __init__(self, data: Path, database: Database, *, alone: bool) -> None:
        self._file = os.open(data / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._database = database
        self._alone = alone
        self._connection: Connection | None = None
        try:
            fcntl.flock(self._file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            self._lock_database()
        except BlockingIOError:
            self.close()
            raise ConfigError(IN_USE if alone else BEING_ROTATED) from None
        except BaseException:
            self.close()
            raise

    def renew(self) -> None:
        """Lock the database again, which has forgotten its sessions."""
        self._unlock_database()
        try:
            self._lock_database()
        except BlockingIOError:
            raise ConfigError(BEING_ROTATED) from None

    def _lock_database(self) -> None:
        if self._database.is_sqlite:
            return
        self._connection = self._database.connect_alone()
        how = "pg_try_advisory_lock" if self._alone else "pg_try_advisory_lock_shared"
        got = self._connection.execute(text(f"SELECT {how}(:lock)"), {"lock": int(Lock.KEY)})
        if not got.scalar_one():
            raise BlockingIOError

    def _unlock_database(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()  # the lock belongs to the session, which a pool would keep open
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        self._unlock_database()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
