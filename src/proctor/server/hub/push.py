"""Publish a version: checked, hashed, and visible all at once or not at all.

A published version never changes. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, func, insert, select, update

from proctor.api.common import is_slug, new_id
from proctor.api.hub import ROLE_RANK, PushForm, PushResult
from proctor.packages.archive import content_hash
from proctor.server.announcements import announce_environment
from proctor.server.db.tables import environments, versions
from proctor.server.hub.access import find_environment, need_namespace, role_of
from proctor.server.hub.push_form import ReceivedPush
from proctor.server.hub.records import (
    describe_environments,
    describe_version,
    is_same_version,
    newest_version,
    versions_of,
)
from proctor.server.hub.sources import PushedSource, read_source
from proctor.server.hub.wheels import Wheel, parse_wheel_name, read_wheel
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, ForbiddenError, InvalidError
from proctor.server.storage.blobs import Blob, Blobs

LONGEST_SUMMARY = 2_000
LONGEST_REQUIREMENTS = 32_000
LONGEST_METADATA = 500_000
MOST_VERSIONS = 1_000


class Push(msgspec.Struct, frozen=True, kw_only=True):
    """A push whose files were read and agree."""

    form: PushForm
    wheel_name: str
    wheel: Wheel
    wheel_blob: Blob
    source: PushedSource
    source_blob: Blob
    content_hash: str


def check_may_push(connection: Connection, caller: Caller, form: PushForm, wheel_name: str) -> str | None:
    """Refuse callers who may not push this, before their files are received. Returns the name if it is new
    here."""
    name = parse_wheel_name(wheel_name).name
    return name if find_target(connection, caller, form, name) is None else None


def find_target(connection: Connection, caller: Caller, form: PushForm, name: str) -> Row[Any] | None:
    """The environment to push to; None if it does not exist yet."""
    caller.need("environments:write")
    owner = form.owner or caller.user
    if not is_slug(name):
        raise InvalidError(
            f"{name!r} is not a valid environment name; use up to 39 lowercase letters, digits and hyphens.",
            field="name",
        )
    row = find_environment(connection, owner, name)
    role = role_of(connection, caller, row) if row is not None else None
    if row is None or role is None:  # does not reveal which of the two it is
        need_namespace(connection, caller, owner)
        return None
    if ROLE_RANK[role] < ROLE_RANK["write"]:
        raise ForbiddenError(
            f"This needs the role 'write' on {owner}/{name}; yours is {role!r}.", role="write"
        )
    if form.visibility not in (None, row.visibility) and role != "owner":
        raise ForbiddenError(f"Only its owners may change whether {owner}/{name} is public.", role="owner")
    return row


async def read_push(received: ReceivedPush, blobs: Blobs) -> Push:
    """Read both files; reject them if they disagree."""
    try:
        async with blobs.local(received.wheel.sha256) as wheel, blobs.local(received.source.sha256) as source:
            return await asyncio.to_thread(read_files, received, wheel, source)
    except FileNotFoundError as error:  # another push of the same file failed, and removed it
        raise ConflictError("A file of this push was deleted at the same moment; push again.") from error


def read_files(received: ReceivedPush, wheel_file: Path, source_file: Path) -> Push:
    wheel = read_wheel(wheel_file, received.wheel_name)
    check_description(wheel)
    source = read_source(source_file, wheel)
    computed = content_hash(source.digests, wheel.digests)
    if computed != received.form.content_hash:
        raise InvalidError(
            "The files do not have the content hash that the push announced; push again.",
            code="content_mismatch",
            content_hash=computed,
        )
    return Push(
        form=received.form,
        wheel_name=received.wheel_name,
        wheel=wheel,
        wheel_blob=received.wheel,
        source=source,
        source_blob=received.source,
        content_hash=computed,
    )


def check_description(wheel: Wheel) -> None:
    """Limits what lists repeat of each wheel."""
    if len(wheel.summary) > LONGEST_SUMMARY:
        raise InvalidError(
            f"The description of the package has more than {LONGEST_SUMMARY:,} characters; shorten it in "
            f"pyproject.toml, and move the rest to the readme.",
            code="bad_wheel",
        )
    if len(wheel.metadata_text) > LONGEST_METADATA:
        raise InvalidError(
            f"The wheel's METADATA has more than {LONGEST_METADATA:,} characters, which installers read "
            f"again and again; shorten the readme.",
            code="bad_wheel",
        )
    if len(wheel.requires_python) + sum(map(len, wheel.dependencies)) > LONGEST_REQUIREMENTS:
        raise InvalidError(
            f"The dependencies of the package take more than {LONGEST_REQUIREMENTS:,} characters; "
            f"shorten the list.",
            code="bad_wheel",
        )


def publish(connection: Connection, caller: Caller, push: Push) -> PushResult:
    environment = find_target(connection, caller, push.form, push.wheel.name)
    if environment is None:
        environment = add_environment(connection, caller, push)
    known = versions_of(connection, [environment.id])
    same = next((row for row in known if is_same_version(row.version, push.wheel.version)), None)
    if same is None:
        refuse_many(known, environment)
        add_version(connection, caller, push, environment.id)
        refresh_environment(connection, push, environment)
    elif same.content_hash != push.content_hash:
        raise ConflictError(
            f"{environment.owner}/{environment.name} {same.version} already exists with other content, "
            f"and published versions never change; raise the version, or push with --auto-bump.",
            code="version_exists",
            content_hash=same.content_hash,
        )
    announce_environment(connection, f"{environment.owner}/{environment.name}")
    now = versions_of(connection, [environment.id])
    mine = next(row for row in now if is_same_version(row.version, push.wheel.version))
    row = connection.execute(select(environments).where(environments.c.id == environment.id)).one()
    return PushResult(
        environment=describe_environments(connection, caller, [row])[0],
        version=describe_version(mine),
        created=same is None,
    )


def refuse_many(known: Sequence[Row[Any]], environment: Row[Any]) -> None:
    """Requests for one version, or for a list of environments, look at all versions."""
    if len(known) >= MOST_VERSIONS:
        raise ConflictError(
            f"{environment.owner}/{environment.name} has {MOST_VERSIONS:,} versions, which is the most there "
            f"may be; delete some first.",
            code="too_many_versions",
        )


def add_environment(connection: Connection, caller: Caller, push: Push) -> Row[Any]:
    now, owner = time.time(), push.form.owner or caller.user
    connection.execute(
        insert(environments).values(
            id=new_id("env"),
            owner=owner,
            name=push.wheel.name,
            visibility=push.form.visibility or "private",
            description=push.wheel.summary,
            tags=push.source.tags,
            created_at=now,
            updated_at=now,
        )
    )
    made = find_environment(connection, owner, push.wheel.name)
    assert made is not None
    return made


def add_version(connection: Connection, caller: Caller, push: Push, environment_id: str) -> None:
    last = select(func.coalesce(func.max(versions.c.number), 0))
    number = connection.execute(last.where(versions.c.environment_id == environment_id)).scalar_one()
    connection.execute(
        insert(versions).values(
            id=new_id("ver"),
            environment_id=environment_id,
            version=push.wheel.version,
            number=number + 1,
            content_hash=push.content_hash,
            wheel_name=push.wheel_name,
            wheel_sha256=push.wheel_blob.sha256,
            wheel_size=push.wheel_blob.size,
            source_sha256=push.source_blob.sha256,
            source_size=push.source_blob.size,
            requires_python=push.wheel.requires_python,
            dependencies=push.wheel.dependencies,
            secrets=push.source.secrets,
            files=push.source.files,
            metadata_text=push.wheel.metadata_text,
            pushed_by=caller.user,
            created_at=time.time(),
            check_status="pending",
            check_message="",
            check_log="",
            check_facts={},
            check_leases=0,
        )
    )


def refresh_environment(connection: Connection, push: Push, environment: Row[Any]) -> None:
    """An environment is described by its newest version."""
    values: dict[str, Any] = {"updated_at": time.time()}
    latest = newest_version(versions_of(connection, [environment.id]))
    if latest is not None and is_same_version(latest.version, push.wheel.version):
        values |= {"description": push.wheel.summary, "tags": push.source.tags}
    if push.form.visibility is not None:
        values["visibility"] = push.form.visibility
    connection.execute(update(environments).where(environments.c.id == environment.id).values(values))
