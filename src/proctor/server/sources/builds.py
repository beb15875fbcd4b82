"""A rollout at a commit as a version on the hub: packed once by content, and played like a pushed one.

Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import Any

from sqlalchemy import Connection, Row, select, update

from proctor.api.hub import PushForm
from proctor.packages.archive import content_hash
from proctor.runner.repository.fetch import FetchResult
from proctor.server.db.tables import environments, versions
from proctor.server.hub.access import find_environment
from proctor.server.hub.push import Push, check_description, publish
from proctor.server.hub.sources import read_source
from proctor.server.hub.wheels import read_wheel
from proctor.server.people.tokens import find_user_caller
from proctor.server.problems import ConflictError
from proctor.server.sources import records
from proctor.server.storage.blobs import Blobs

LONGEST_SLUG = 39
HASH_DIGITS = 6
CHECKED = "It was built from a commit; each run loads it with its own recipe."


def environment_name(source: str, rollout: str) -> str:
    """The name of the environment that a rollout becomes."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"{source}-{rollout}".lower()).strip("-")
    if slug == f"{source}-{rollout}" and len(slug) <= LONGEST_SLUG:
        return slug
    digest = hashlib.sha256(f"{source}/{rollout}".encode()).hexdigest()[:HASH_DIGITS]
    return f"{slug[: LONGEST_SLUG - HASH_DIGITS - 1].strip('-')}-{digest}"


async def read_package(result: FetchResult, owner: str, blobs: Blobs) -> Push:
    """Store both files and read them as a push is read: they come from a sandbox."""
    wheel_blob, source_blob = await blobs.add(result.wheel), await blobs.add(result.source)
    async with blobs.local(wheel_blob.sha256) as wheel_file, blobs.local(source_blob.sha256) as source_file:
        wheel = await asyncio.to_thread(read_wheel, wheel_file, result.commit.wheel_name)
        check_description(wheel)
        source = await asyncio.to_thread(read_source, source_file, wheel)
    computed = content_hash(source.digests, wheel.digests)
    return Push(
        form=PushForm(content_hash=computed, owner=owner),
        wheel_name=result.commit.wheel_name,
        wheel=wheel,
        wheel_blob=wheel_blob,
        source=source,
        source_blob=source_blob,
        content_hash=computed,
    )


def publish_build(
    connection: Connection, user: str, source: Row[Any], rollout: str, push: Push, result: FetchResult
) -> None:
    """Publish the version, unless its content is already published, and record which commit it is."""
    existing = find_environment(connection, source.owner, push.wheel.name)
    if existing is not None and not records.find_own_environment(connection, source.id, existing.id):
        raise ConflictError(
            f"{source.owner}/{push.wheel.name} exists and was not built from {source.name}; add the source "
            f"under another name.",
            code="name_taken",
        )
    made = publish(connection, find_user_caller(connection, user), push)
    unchecked = (versions.c.id == made.version.id) & (versions.c.check_status == "pending")
    connection.execute(update(versions).where(unchecked).values(check_status="passed", check_message=CHECKED))
    records.save_build(connection, source.id, rollout, made.version.id, result.commit)


def environment_slug(connection: Connection, environment_id: str) -> str:
    row = connection.execute(select(environments).where(environments.c.id == environment_id)).one()
    return f"{row.owner}/{row.name}"
