"""Check at the start that the server has the database's key.

The first start stores one value sealed with the key; a later start with another key fails at once, instead of
in the first run that needs a secret. Knows nothing of files.
"""

from __future__ import annotations

import time

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from proctor.errors import ConfigError
from proctor.server.db.database import Database
from proctor.server.db.tables import seals
from proctor.server.secrets.sealed_columns import SEALED
from proctor.server.secrets.vault import KEY_FILE, KEY_FILE_VARIABLE, UnreadableError, Vault

PROOF = "proof"
CONTENT = b"proctor"


def ensure_key(database: Database, vault: Vault, *, forget: bool = False) -> None:
    try:
        database.write_now(verify_key, vault, forget=forget)
    except IntegrityError:  # another server on the database starts for the first time at the same moment
        database.write_now(verify_key, vault, forget=forget)


def is_sealed(connection: Connection) -> bool:
    """Whether the database has a key, wherever that is."""
    return connection.execute(select(seals.c.name).where(seals.c.name == PROOF)).first() is not None


def verify_key(connection: Connection, vault: Vault, *, forget: bool = False) -> None:
    """Refuse a key that is not the database's or, if that one is lost, delete everything it has sealed."""
    sealed = connection.execute(select(seals.c.sealed).where(seals.c.name == PROOF)).scalar_one_or_none()
    if sealed is not None:
        try:
            vault.open(sealed, PROOF)
        except UnreadableError:
            if not forget:
                raise ConfigError(
                    f"The secrets in the database were sealed with another key: put the right {KEY_FILE} "
                    f"into the data folder or name it with {KEY_FILE_VARIABLE}; if it is lost, start once "
                    f"with --forget-secrets, which deletes them."
                ) from None
            for each in SEALED:
                connection.execute(delete(each.column.table))
        else:
            return
    connection.execute(insert(seals).values(name=PROOF, sealed=vault.seal(CONTENT, PROOF), at=time.time()))
