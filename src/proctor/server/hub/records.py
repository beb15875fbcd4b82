"""Environments, versions and collaborators in the database. Knows nothing of HTTP or of files."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
from packaging.version import InvalidVersion
from packaging.version import Version as Number
from sqlalchemy import Connection, Row, delete, insert, select, update

from proctor.api.common import new_id
from proctor.api.hub import (
    Check,
    Collaborator,
    EnvironmentChange,
    EnvironmentInfo,
    Fork,
    Role,
    Version,
    VersionDetails,
)
from proctor.errors import did_you_mean
from proctor.run import ENDED
from proctor.server.announcements import announce_environment
from proctor.server.db.structs import struct_from_row
from proctor.server.db.tables import environments, namespaces, roles, runs, versions
from proctor.server.hub.access import (
    find_environment,
    list_roles,
    need_environment,
    need_namespace,
)
from proctor.server.hub.run_policy import find_default
from proctor.server.hub.tasks import copy_tasks
from proctor.server.hub.wheels import LONGEST_VERSION
from proctor.server.names import LINES, check_text
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, InvalidError, NotFoundError
from proctor.server.storage.records import refer_to_files

LATEST = "latest"
LONGEST_DESCRIPTION = 10_000
NEAREST_OF = 50
"""Versions among which a mistyped one is looked for, the newest."""
HASH_PREFIX = re.compile(r"[0-9a-f]{8,64}")
LARGE_COLUMNS = frozenset({"files", "metadata_text", "check_log", "check_details", "lock"})
BRIEF_COLUMNS = [column for column in versions.c if column.name not in LARGE_COLUMNS]
"""What a list of versions shows of each."""


# Finding


def resolve_version(
    connection: Connection, caller: Caller, slug: str, role: Role = "read"
) -> tuple[Row[Any], Row[Any]]:
    """The environment and the version of `owner/name`, `owner/name@version` or `owner/name@hash`; without an
    owner, of the caller's own."""
    name, _, wanted = slug.partition("@")
    if "/" not in name and caller.user:
        name = f"{caller.user}/{name}"
    environment = need_environment(connection, caller, name, role)
    return environment, find_version(connection, environment, wanted)


def find_version(connection: Connection, environment: Row[Any], wanted: str) -> Row[Any]:
    """The version by its number or a prefix of its content hash; the newest by default."""
    if len(wanted) > LONGEST_VERSION:
        raise InvalidError(f"A version may have at most {LONGEST_VERSION} characters.", field="version")
    known = versions_of(connection, [environment.id])
    if wanted in ("", LATEST):
        found = newest_version(known)
    else:
        found = next((row for row in known if is_same_version(row.version, wanted)), None) or find_by_hash(
            known, wanted
        )
    if found is None:
        raise NotFoundError(describe_missing(environment, wanted, known), version=wanted)
    return connection.execute(select(versions).where(versions.c.id == found.id)).one()


def find_by_hash(known: Sequence[Row[Any]], wanted: str) -> Row[Any] | None:
    if not HASH_PREFIX.fullmatch(wanted):
        return None
    return next((row for row in known if row.content_hash.startswith(wanted)), None)


def describe_missing(environment: Row[Any], wanted: str, known: Sequence[Row[Any]]) -> str:
    slug = f"{environment.owner}/{environment.name}"
    if not known:
        return f"{slug} has no versions; push one."
    near = did_you_mean(wanted, [row.version for row in known[:NEAREST_OF]])
    return f"{slug} has no version {wanted!r}{near}"


def versions_of(connection: Connection, environment_ids: Sequence[str]) -> list[Row[Any]]:
    """All versions of some environments, the newest of each first; without their large columns."""
    query = select(*BRIEF_COLUMNS).where(versions.c.environment_id.in_(environment_ids))
    return sorted(connection.execute(query), key=version_rank, reverse=True)


def newest_version(known: Sequence[Row[Any]]) -> Row[Any] | None:
    """The one that pip would choose too."""
    return max(known, key=version_rank, default=None)


def version_rank(row: Row[Any]) -> tuple[bool, Number, int]:
    number = number_of(row.version)
    return not number.is_prerelease, number, row.number


def is_same_version(version: str, wanted: str) -> bool:
    try:
        return number_of(version) == number_of(wanted)
    except InvalidVersion:
        return False


@lru_cache(maxsize=2**16)
def number_of(version: str) -> Number:
    """A version as it is compared; reading one takes longer than everything else that a list needs of it."""
    return Number(version)


# Building answers


def describe_version(row: Row[Any]) -> Version:
    return struct_from_row(
        Version,
        row,
        check=Check(
            status=row.check_status,
            message=row.check_message,
            tasks=row.check_tasks,
            seconds=row.check_seconds,
            log=getattr(row, "check_log", ""),
        ),
        details=decode_details(getattr(row, "check_details", None)),
    )


def decode_details(stored: bytes | None) -> VersionDetails | None:
    return None if stored is None else msgspec.json.decode(stored, type=VersionDetails)


def describe_environments(
    connection: Connection, caller: Caller, rows: Sequence[Row[Any]]
) -> list[EnvironmentInfo]:
    held = list_roles(connection, caller, rows)
    default = find_default(connection)
    latest: dict[str, Row[Any]] = {}
    for version in versions_of(connection, [row.id for row in rows]):
        latest.setdefault(version.environment_id, version)
    return [
        struct_from_row(
            EnvironmentInfo,
            row,
            role=held[row.id],
            latest=describe_version(latest[row.id]) if row.id in latest else None,
            run_policy=row.run_policy or default,
            run_policy_is_default=row.run_policy is None,
        )
        for row in rows
    ]


def describe_environment(connection: Connection, caller: Caller, slug: str) -> EnvironmentInfo:
    return describe_environments(connection, caller, [need_environment(connection, caller, slug)])[0]


# Changing


def change_environment(
    connection: Connection, caller: Caller, slug: str, wanted: EnvironmentChange
) -> EnvironmentInfo:
    row = need_environment(connection, caller, slug, "owner")
    check_text(wanted.description or "", "description", longest=LONGEST_DESCRIPTION, allowed=LINES)
    given = {"visibility": wanted.visibility, "description": wanted.description}
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if wanted.run_policy is not None:
        values["run_policy"] = None if wanted.run_policy == "default" else wanted.run_policy
    connection.execute(
        update(environments).where(environments.c.id == row.id).values(**values, updated_at=time.time())
    )
    return describe_environment(connection, caller, slug)


def remove_environment(connection: Connection, caller: Caller, slug: str) -> list[str]:
    """Returns the hashes of its own files."""
    row = need_environment(connection, caller, slug, "owner")
    refuse_in_use(connection, slug, runs.c.environment_id == row.id)
    files = list_hashes(versions_of(connection, [row.id]))
    connection.execute(delete(environments).where(environments.c.id == row.id))
    return files


def remove_version(connection: Connection, caller: Caller, slug: str, version: str) -> list[str]:
    environment = need_environment(connection, caller, slug, "owner")
    row = find_version(connection, environment, version)
    refuse_in_use(connection, f"{slug}@{row.version}", runs.c.version_id == row.id)
    connection.execute(delete(versions).where(versions.c.id == row.id))
    return list_hashes([row])


def refuse_in_use(connection: Connection, what: str, condition: Any) -> None:
    query = select(runs.c.id).where(condition, runs.c.status.not_in(ENDED)).limit(1)
    run = connection.execute(query).scalar()
    if run is not None:
        raise ConflictError(f"{what} is used by the run {run}; stop it first.", code="in_use", run=run)


def list_hashes(rows: Sequence[Row[Any]]) -> list[str]:
    return list(dict.fromkeys(sha for row in rows for sha in (row.wheel_sha256, row.source_sha256)))


def fork_environment(connection: Connection, caller: Caller, slug: str, wanted: Fork) -> EnvironmentInfo:
    """A copy of one version in the caller's namespace; it is private, and records its origin."""
    source, version = resolve_version(connection, caller, f"{slug}@{wanted.version or LATEST}")
    owner = wanted.team or caller.user
    need_namespace(connection, caller, owner)
    if find_environment(connection, owner, source.name) is not None:
        raise ConflictError(f"{owner}/{source.name} already exists.", code="name_taken")
    refer_to_files(connection, [version.wheel_sha256, version.source_sha256])
    now, id_ = time.time(), new_id("env")
    connection.execute(
        insert(environments).values(
            id=id_,
            owner=owner,
            name=source.name,
            visibility="private",
            description=source.description,
            tags=source.tags,
            forked_from=f"{source.owner}/{source.name}@{version.version}",
            created_at=now,
            updated_at=now,
        )
    )
    copied = {**version._mapping, "id": new_id("ver"), "environment_id": id_, "number": 1}
    if version.check_status == "running":  # by a host that will report on the original
        copied |= {"check_status": "pending", "check_lease_until": None, "check_host": None}
    connection.execute(insert(versions).values({**copied, "pushed_by": caller.user, "created_at": now}))
    copy_tasks(connection, version.id, copied["id"])
    announce_environment(connection, f"{owner}/{source.name}")
    return describe_environment(connection, caller, f"{owner}/{source.name}")


# Collaborators


def list_collaborators(connection: Connection, caller: Caller, slug: str) -> list[Collaborator]:
    row = need_environment(connection, caller, slug, "owner")
    query = select(roles).where(roles.c.environment_id == row.id).order_by(roles.c.holder)
    return [Collaborator(name=each.holder, role=each.role) for each in connection.execute(query)]


def put_collaborator(
    connection: Connection, caller: Caller, slug: str, collaborator: Collaborator
) -> Collaborator:
    row = need_environment(connection, caller, slug, "owner")
    name = collaborator.name
    if connection.execute(select(namespaces.c.name).where(namespaces.c.name == name)).first() is None:
        raise InvalidError(f"There is no user and no team {name!r}.", field="name")
    delete_role(connection, row.id, name)
    connection.execute(insert(roles).values(environment_id=row.id, holder=name, role=collaborator.role))
    return collaborator


def remove_collaborator(connection: Connection, caller: Caller, slug: str, name: str) -> None:
    row = need_environment(connection, caller, slug, "owner")
    if not delete_role(connection, row.id, name):
        raise NotFoundError(f"{name!r} has no role of its own on {slug}.")


def delete_role(connection: Connection, environment_id: str, name: str) -> int:
    gone = delete(roles).where(roles.c.environment_id == environment_id, roles.c.holder == name)
    return connection.execute(gone).rowcount
