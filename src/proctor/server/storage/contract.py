"""What a store of files must do: keep bytes by key, whole or not at all.

A key is written once and never again, so a late delete can hit nothing that was stored since. Knows nothing
of what the files are, or of the database that says which key holds what.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from proctor.server.problems import ApiError

RETRY_SECONDS = 5


class StoredObject(NamedTuple):
    key: str
    size: int
    modified_at: float


class StorageAwayError(ApiError):
    """The store did not answer in time, or refused; the same request may succeed later."""

    status, code = 503, "storage_away"

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_after=RETRY_SECONDS)


class BlobStore(Protocol):
    """Files by key. Every method but `path` may raise StorageAwayError."""

    address: str
    """What the database remembers the store by."""

    async def put(self, key: str, file: Path) -> None:
        """Store a copy of a file; readers see all of it or nothing."""

    def read(self, key: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes, None]:
        """The bytes of an object, in blocks; FileNotFoundError if there is none."""

    async def find_size(self, key: str) -> int | None:
        """How many bytes an object has; None if there is none."""

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove objects; missing ones are not an error."""

    def list_objects(self, folder: str = "") -> AsyncIterator[list[StoredObject]]:
        """Everything in the store, or whose keys begin with the name of a folder, some at a time."""

    async def sign(self, key: str, seconds: float) -> str | None:
        """An address from which anyone may read the object for a while; None if the store has no such."""

    def path(self, key: str) -> Path | None:
        """The file that is the object; None if it is on no disk of this machine."""
