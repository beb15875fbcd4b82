"""Rotate the server's key: reseal everything it has sealed, all of it or nothing.

    1. write the new key beside the old one           secret.key.new
    2. reseal every value, in one transaction
    3. replace the old key with the new one           secret.key

If the process is killed in between, both keys exist, and one of them opens the database: that one is kept
when a server, or the next rotation, starts. Knows nothing of what the values are.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec
from sqlalchemy import Connection, and_, select, update

from proctor.errors import ConfigError, describe_os_error
from proctor.server.db.database import Database
from proctor.server.db.tables import seals
from proctor.server.secrets.key_check import PROOF, ensure_key
from proctor.server.secrets.sealed_columns import SEALED
from proctor.server.secrets.vault import UnreadableError, Vault, new_key, read_key
from proctor.support.write_once import write_once


class Rotated(msgspec.Struct, frozen=True):
    """What was resealed."""

    values: int
    left: int
    """Values that the old key did not open either, and that stay as they are."""


def rotate(database: Database, file: Path) -> Rotated:
    """Give the database a new key; the caller must be the only one that uses it."""
    file = file.resolve()  # replace the target of a link, not the link
    finish_rotation(database, file)
    try:
        old = Vault(read_key(file))
        ensure_key(database, old)
        write_once(new_file(file), new_key)
        sync_folder(file.parent)
        database.sync_every_write()  # the old key must survive until its last values are resealed
        done = database.write_now(seal_anew, old, Vault(read_key(new_file(file))))
        put_in_place(file)
    except OSError as error:
        raise ConfigError(f"Cannot replace the key {file}: {describe_os_error(error)}.") from error
    return done


def seal_anew(connection: Connection, old: Vault, new: Vault) -> Rotated:
    values = left = 0
    for column, meant_for in SEALED:
        table = column.table
        for row in connection.execute(select(table).with_for_update()).all():
            purpose = meant_for(row)
            try:
                opened = old.open(row._mapping[column], purpose)
            except UnreadableError:
                left += 1
                continue
            this = and_(*(key == row._mapping[key] for key in table.primary_key))
            connection.execute(update(table).where(this).values({column: new.seal(opened, purpose)}))
            values += 1
    return Rotated(values, left)


def finish_rotation(database: Database, file: Path) -> None:
    """Settle an interrupted rotation: keep the key that opens the database."""
    file = file.resolve()
    if not new_file(file).exists():
        return
    proof = database.read_now(
        lambda connection: connection.execute(
            select(seals.c.sealed).where(seals.c.name == PROOF)
        ).scalar_one_or_none()
    )
    with suppress(FileNotFoundError):  # another server was first
        if opens(new_file(file), proof):
            put_in_place(file)
        elif opens(file, proof):
            new_file(file).unlink()


def opens(file: Path, proof: bytes | None) -> bool:
    """Whether a key opens the database; one that was only partly written opens nothing."""
    try:
        return proof is not None and bool(Vault(read_key(file)).open(proof, PROOF))
    except (ConfigError, UnreadableError):
        return False


def put_in_place(file: Path) -> None:
    new_file(file).replace(file)
    sync_folder(file.parent)


def new_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.new")


def sync_folder(folder: Path) -> None:
    """A name that is not on disk yet may be lost in a power failure."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
