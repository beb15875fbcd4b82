"""Every sealed value in the database, and what each is for. Knows nothing of keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import Column, Row

from proctor.server.db.tables import (
    attempt_secrets,
    creations,
    run_links,
    run_secrets,
    seals,
    secrets,
    sources,
)
from proctor.server.runs.links import link_sealing_context
from proctor.server.secrets.attempts import meant_for_attempt
from proctor.server.secrets.records import sealing_context
from proctor.server.secrets.resolution import run_sealing_context
from proctor.server.sources.credentials import source_sealing_context


def meant_for_creation(token_id: str, key: str) -> str:
    return f"creation:{token_id}:{key}"


class Sealed(NamedTuple):
    """A column of sealed values."""

    column: Column[Any]
    meant_for: Callable[[Row[Any]], str]


SEALED = (
    Sealed(seals.c.sealed, lambda row: str(row.name)),
    Sealed(secrets.c.sealed, lambda row: sealing_context(row.id)),
    Sealed(run_secrets.c.sealed, lambda row: run_sealing_context(row.run_id, row.name)),
    Sealed(attempt_secrets.c.sealed, lambda row: meant_for_attempt(row.run_id, row.attempt)),
    Sealed(run_links.c.sealed, lambda row: link_sealing_context(row.run_id)),
    Sealed(sources.c.sealed, lambda row: source_sealing_context(row.id)),
    Sealed(creations.c.response, lambda row: meant_for_creation(row.caller, row.key)),
)
