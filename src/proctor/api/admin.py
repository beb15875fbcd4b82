"""What only admins see of a server."""

from __future__ import annotations

from typing import Literal

import msgspec

from proctor.run import RunStatus

StorageKind = Literal["packages", "rows", "logs", "datasets"]


class HostRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a host plays."""

    id: str
    name: str
    owner: str
    environment: str
    model: str
    status: RunStatus
    started_at: float | None = None
    settled: int = 0
    planned: int | None = None


class HostInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that plays runs."""

    token_id: str
    """To revoke it."""
    name: str
    is_own: bool
    """Whether a server started it by itself."""
    is_connected: bool
    """Whether it was in contact lately."""
    created_at: float
    last_used_at: float | None = None
    """When it was last in contact, to the minute."""
    expires_at: float | None = None
    runs: list[HostRun] = []
    checks: list[str] = []
    """The versions that it checks."""


class QueueItem(msgspec.Struct, frozen=True, kw_only=True):
    """A run that waits for a host, or a version that waits for its check."""

    kind: Literal["run", "check"]
    id: str
    name: str
    user: str
    environment: str
    model: str | None = None
    since: float
    reason: str
    """Why it waits."""


class StoredKind(msgspec.Struct, frozen=True, kw_only=True):
    kind: StorageKind
    count: int
    """Of versions, runs or datasets."""
    bytes: int


class UserStorage(msgspec.Struct, frozen=True, kw_only=True):
    user: str
    bytes: int


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """What a server stores."""

    kinds: list[StoredKind]
    users: list[UserStorage]
    """Those who store most, the largest first."""
    quota_bytes: int
    """What each user may store."""
    database_bytes: int | None = None
    """The size of the database's file; None if it is not on this machine."""
    disk_free_bytes: int
    disk_bytes: int
