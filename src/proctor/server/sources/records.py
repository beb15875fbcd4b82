"""Sources, and what was built from them, in the database. Knows nothing of HTTP or git."""

from __future__ import annotations

import re
import secrets
import time
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, select, update

from proctor.api.common import is_slug, new_id
from proctor.api.sources import NewSource, SourceCommit, SourceInfo
from proctor.runner.repository.request import CommitLine, FetchedCommit
from proctor.server.announcements import announce_source
from proctor.server.db.tables import source_builds, sources, versions
from proctor.server.hub.access import list_namespaces, need_namespace
from proctor.server.people.tokens import Caller
from proctor.server.problems import ConflictError, InvalidError, NotFoundError
from proctor.server.secrets.vault import Vault
from proctor.server.sources.credentials import SourceCredentials, seal_credentials
from proctor.support.git_urls import GitUrl

MOST_SOURCES = 200
"""Of one owner."""
WEBHOOK_BYTES = 24


def add_source(
    connection: Connection, vault: Vault, caller: Caller, new: NewSource, found: GitUrl
) -> tuple[Row[Any], str]:
    """A new source, and the secret of its webhook."""
    owner = new.team or caller.user
    need_namespace(connection, caller, owner)
    name = new.name or default_name(found)
    if not is_slug(name):
        raise InvalidError(
            f"{name!r} is not a valid name of a source; use up to 39 lowercase letters, digits and hyphens.",
            field="name",
        )
    if find_named(connection, owner, name) is not None:
        raise ConflictError(f"{owner}/{name} exists; choose another name.", code="name_taken")
    owned = select(func.count()).where(sources.c.owner == owner)
    if connection.execute(owned).scalar_one() >= MOST_SOURCES:
        raise ConflictError(f"{owner} has {MOST_SOURCES} sources, the most there may be.", code="too_many")
    id_, secret = new_id("src"), secrets.token_hex(WEBHOOK_BYTES)
    sealed = SourceCredentials(username=new.username, token=new.token, key=new.key, webhook_secret=secret)
    connection.execute(
        insert(sources).values(
            id=id_,
            owner=owner,
            name=name,
            url=found.url,
            repository=found.repository,
            sealed=seal_credentials(vault, id_, sealed),
            has_credentials=bool(new.token or new.key),
            known_hosts="",
            branch="",
            commit_sha="",
            author="",
            subject="",
            rollouts=[],
            problem="",
            created_at=time.time(),
        )
    )
    announce_source(connection, id_)
    return connection.execute(select(sources).where(sources.c.id == id_)).one(), secret


def default_name(found: GitUrl) -> str:
    last = found.repository.rpartition("/")[2].lower()
    return re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:39].strip("-")


def find_named(connection: Connection, owner: str, name: str) -> Row[Any] | None:
    query = select(sources).where(sources.c.owner == owner, sources.c.name == name)
    return connection.execute(query).one_or_none()


def visible_condition(caller: Caller) -> ColumnElement[bool] | None:
    """The sources of a user and their teams; None for all."""
    return None if caller.is_admin else sources.c.owner.in_(list_namespaces(caller))


def need_source(connection: Connection, caller: Caller, word: str) -> Row[Any]:
    """A source by its id or owner/name, that the caller may use."""
    owner, slash, name = word.partition("/")
    named = (sources.c.owner == owner) & (sources.c.name == name) if slash else sources.c.id == word
    visible = visible_condition(caller)
    query = select(sources).where(named)
    row = connection.execute(query if visible is None else query.where(visible)).one_or_none()
    if row is None or caller.kind != "user":
        raise NotFoundError(
            f"There is no source {word!r} that you may use; `proctor source list` lists yours."
        )
    return row


def list_sources(connection: Connection, caller: Caller, repository: str | None) -> list[Row[Any]]:
    query = select(sources).order_by(sources.c.owner, sources.c.name)
    visible = visible_condition(caller)
    if visible is not None:
        query = query.where(visible)
    if repository is not None:
        query = query.where(sources.c.repository == repository)
    return list(connection.execute(query.limit(10 * MOST_SOURCES)))


def remove_source(connection: Connection, source_id: str) -> None:
    """The versions that were built from it stay, and so do its runs."""
    announce_source(connection, source_id)
    connection.execute(delete(sources).where(sources.c.id == source_id))


def save_commit(connection: Connection, source_id: str, fetched: FetchedCommit) -> None:
    """Record what a sync found."""
    values: dict[str, Any] = {
        "branch": fetched.branch,
        "commit_sha": fetched.commit,
        "author": strip_unstorable(fetched.author),
        "subject": strip_unstorable(fetched.subject),
        "committed_at": fetched.committed_at,
        "rollouts": [strip_unstorable(each.name) for each in fetched.rollouts],
        "problem": "",
        "synced_at": time.time(),
        "branches": [strip_unstorable(name) for name in fetched.branches],
        "history": msgspec.to_builtins([describe_line(line) for line in fetched.history]),
    }
    connection.execute(update(sources).where(sources.c.id == source_id).values(values))


def save_known_hosts(connection: Connection, source_id: str, known_hosts: str) -> None:
    """The keys that its ssh server showed first are the only ones accepted afterwards."""
    unknown = (sources.c.id == source_id) & (sources.c.known_hosts == "")
    connection.execute(update(sources).where(unknown).values(known_hosts=known_hosts))


def save_problem(connection: Connection, source_id: str, problem: str) -> None:
    values = {"problem": strip_unstorable(problem), "synced_at": time.time()}
    connection.execute(update(sources).where(sources.c.id == source_id).values(values))


def find_build(connection: Connection, source_id: str, commit: str, rollout: str) -> Row[Any] | None:
    """What a rollout was built to at a commit, if its version still exists."""
    query = (
        select(source_builds, versions.c.environment_id, versions.c.version)
        .join(versions, versions.c.id == source_builds.c.version_id)
        .where(
            source_builds.c.source_id == source_id,
            source_builds.c.commit_sha == commit,
            source_builds.c.rollout == rollout,
        )
    )
    return connection.execute(query).one_or_none()


def find_own_environment(connection: Connection, source_id: str, environment_id: str) -> bool:
    """Whether an environment was built from a source."""
    query = (
        select(source_builds.c.source_id)
        .join(versions, versions.c.id == source_builds.c.version_id)
        .where(source_builds.c.source_id == source_id, versions.c.environment_id == environment_id)
    )
    return connection.execute(query.limit(1)).first() is not None


def save_build(
    connection: Connection, source_id: str, rollout: str, version_id: str, fetched: FetchedCommit
) -> None:
    if find_build(connection, source_id, fetched.commit, rollout) is not None:
        return
    connection.execute(
        insert(source_builds).values(
            source_id=source_id,
            commit_sha=fetched.commit,
            rollout=rollout,
            version_id=version_id,
            files=fetched.files,
            author=strip_unstorable(fetched.author),
            subject=strip_unstorable(fetched.subject),
        )
    )


def strip_unstorable(text: str) -> str:
    return text.replace("\0", "")


def describe_line(line: CommitLine) -> SourceCommit:
    return SourceCommit(
        commit_sha=line.commit,
        author=strip_unstorable(line.author),
        subject=strip_unstorable(line.subject),
        committed_at=line.committed_at,
    )


def describe_source(row: Row[Any], server_url: str, syncing_since: float | None = None) -> SourceInfo:
    kept = ("id", "name", "owner", "url", "repository", "has_credentials", "branch", "commit_sha", "author")
    more = ("subject", "committed_at", "rollouts", "problem", "synced_at", "created_at", "branches")
    values: dict[str, Any] = {name: getattr(row, name) for name in (*kept, *more)}
    return SourceInfo(
        **values,
        webhook_url=f"{server_url}/api/v1/sources/{row.id}/webhook",
        syncing_since=syncing_since,
    )
