"""Open the store of a server's files: the one that the database remembers, and no other database's.

A wrong bucket, key or endpoint is refused at the start, within seconds. Knows nothing of HTTP.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from sqlalchemy import Connection, delete, func, insert, select

from proctor.errors import ConfigError
from proctor.server.db.database import Database
from proctor.server.db.tables import files, server_settings
from proctor.server.problems import ApiError
from proctor.server.settings import Settings
from proctor.server.storage.contract import BlobStore
from proctor.server.storage.folder import ADDRESS as FOLDER
from proctor.server.storage.folder import FolderStore
from proctor.server.storage.object_store import ObjectStore, open_object_store

START_SECONDS = 12.0
CHECK_RETRY_SECONDS = 1.0
STORAGE, OWNER = "storage", "storage_owner"
MARKER = "proctor-storage.json"
"""Says which database the objects below a prefix belong to: another would delete them as unused."""

T = TypeVar("T")


class Marker(msgspec.Struct, frozen=True):
    owner: str


def open_store(settings: Settings, database: Database) -> BlobStore:
    """The store of a server that starts."""
    address = normalize_address(settings.storage)
    recorded, count = database.read_now(find_recorded)
    if recorded != address and count:
        raise ConfigError(
            f"The {count:,} files of this server are in {describe_address(recorded)}, not in "
            f"{describe_address(address)}; start it with `--storage {recorded}`, or move them first: "
            f"`proctor server storage move --to {address}`."
        )
    store = connect_store(address, settings, database)
    database.write_now(save_setting, STORAGE, address)
    return store


def connect_store(address: str, settings: Settings, database: Database) -> BlobStore:
    """A store that answers and belongs to this database."""
    if address == FOLDER:
        return FolderStore(blob_folder(settings.files_folder))
    store = open_object_store(
        address,
        os.environ,
        public_endpoint=settings.storage_public_endpoint,
        signs=settings.signed_downloads,
    )
    impatient = open_object_store(address, os.environ, retry_seconds=CHECK_RETRY_SECONDS)
    claim_store(impatient, database)
    return store


def claim_store(store: ObjectStore, database: Database) -> None:
    """Check that the store can be read and written, and that it is this database's."""
    owner = database.write_now(find_owner)

    def claim() -> str:
        found = store.read_marker(MARKER)
        if found is None:
            store.write_marker(MARKER, msgspec.json.encode(Marker(owner)))
            return owner
        return msgspec.json.decode(found, type=Marker).owner

    try:
        claimed = run_within(START_SECONDS, claim)
    except ApiError as error:
        raise ConfigError(str(error)) from error
    except TimeoutError:
        raise ConfigError(
            f"The object store of {store.address} does not answer within {START_SECONDS:.0f} seconds; check "
            f"AWS_ENDPOINT_URL, AWS_REGION and the credentials."
        ) from None
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{store.address}/{MARKER} was not written by Proctor: {error}.") from error
    if claimed != owner:
        raise ConfigError(
            f"{store.address} holds the files of another Proctor database; name another prefix with "
            f"--storage."
        )


def run_within(seconds: float, work: Callable[[], T]) -> T:
    """What a function returns; TimeoutError if it takes longer, and then it ends with the process."""
    done: list[T] = []
    failed: list[BaseException] = []

    def attempt() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=attempt, daemon=True, name="storage-check")
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError
    return done[0]


def blob_folder(data: Path) -> Path:
    return data / "blobs"


def normalize_address(address: str) -> str:
    return address.rstrip("/")


def describe_address(address: str) -> str:
    return "the data folder" if address == FOLDER else address


# What the database remembers


def find_recorded(connection: Connection) -> tuple[str, int]:
    """The store that the files are in, and how many there are."""
    return (
        find_setting(connection, STORAGE) or FOLDER,
        connection.execute(select(func.count()).select_from(files)).scalar_one(),
    )


def find_owner(connection: Connection) -> str:
    """An id of this database, for its stores."""
    known = find_setting(connection, OWNER)
    if known is None:
        known = secrets.token_hex(8)
        save_setting(connection, OWNER, known)
    return known


def find_setting(connection: Connection, name: str) -> str | None:
    query = select(server_settings.c.value).where(server_settings.c.name == name)
    return connection.execute(query).scalar()


def save_setting(connection: Connection, name: str, value: str) -> None:
    connection.execute(delete(server_settings).where(server_settings.c.name == name))
    connection.execute(insert(server_settings).values(name=name, value=value))
