"""What commits of sources hold, in the database: fetched once, and kept for the next reader.

Knows nothing of HTTP or git.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, insert, select

from proctor.api.sources import SourceCommit, SourceContent, SourceRecipe
from proctor.runner.repository.request import FetchedCommit
from proctor.server.db.tables import source_commits
from proctor.server.sources.records import strip_unstorable

MOST_KEPT = 50
"""Commits of one source."""


def save_content(connection: Connection, source_id: str, fetched: FetchedCommit) -> None:
    of_source = source_commits.c.source_id == source_id
    connection.execute(delete(source_commits).where(of_source, source_commits.c.commit_sha == fetched.commit))
    connection.execute(
        insert(source_commits).values(
            source_id=source_id,
            commit_sha=fetched.commit,
            author=strip_unstorable(fetched.author),
            subject=strip_unstorable(fetched.subject),
            committed_at=fetched.committed_at,
            rollouts=[strip_unstorable(each.name) for each in fetched.rollouts],
            recipes=msgspec.to_builtins(
                [
                    SourceRecipe(path=strip_unstorable(each.path), recipe=each.recipe, problem=each.problem)
                    for each in fetched.recipes
                ]
            ),
            fetched_at=time.time(),
        )
    )
    newest = select(source_commits.c.commit_sha).where(of_source)
    kept = newest.order_by(source_commits.c.fetched_at.desc()).limit(MOST_KEPT)
    shas = connection.execute(kept).scalars().all()
    connection.execute(delete(source_commits).where(of_source, source_commits.c.commit_sha.not_in(shas)))


def find_content(connection: Connection, source_id: str, commit: str) -> SourceContent | None:
    query = select(source_commits).where(
        source_commits.c.source_id == source_id, source_commits.c.commit_sha == commit
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return SourceContent(
        commit=SourceCommit(
            commit_sha=row.commit_sha, author=row.author, subject=row.subject, committed_at=row.committed_at
        ),
        rollouts=row.rollouts,
        recipes=msgspec.convert(row.recipes, list[SourceRecipe]),
    )


def list_history(source: Row[Any]) -> Sequence[SourceCommit]:
    """The last commits of the branch that was synced last, newest first."""
    return msgspec.convert(source.history, list[SourceCommit])
