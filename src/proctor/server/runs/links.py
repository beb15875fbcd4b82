"""Links by which anyone may read a run: random, stored as a hash and sealed, valid until they are removed.

Knows nothing of who may share a run.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

from sqlalchemy import Connection, delete, insert, select

from proctor.server.db.tables import run_links
from proctor.server.secrets.vault import Vault

LINK_BYTES = 32


def add_link(connection: Connection, vault: Vault, run_id: str) -> None:
    link = secrets.token_urlsafe(LINK_BYTES)
    connection.execute(
        insert(run_links).values(
            run_id=run_id,
            link_hash=hash_link(link),
            sealed=vault.seal(link.encode(), link_sealing_context(run_id)),
            created_at=time.time(),
        )
    )


def read_link(connection: Connection, vault: Vault, run_id: str) -> str | None:
    """The link of a run, for those who may change it."""
    query = select(run_links.c.sealed).where(run_links.c.run_id == run_id)
    sealed = connection.execute(query).scalar_one_or_none()
    return None if sealed is None else vault.open(sealed, link_sealing_context(run_id)).decode()


def remove_link(connection: Connection, run_id: str) -> None:
    connection.execute(delete(run_links).where(run_links.c.run_id == run_id))


def is_link(connection: Connection, run_id: str, link: str) -> bool:
    known = connection.execute(select(run_links.c.link_hash).where(run_links.c.run_id == run_id)).scalar()
    return known is not None and hmac.compare_digest(known, hash_link(link))


def hash_link(link: str) -> bytes:
    """Plain SHA-256: a link is random, so there is nothing to guess."""
    return hashlib.sha256(link.encode()).digest()


def link_sealing_context(run_id: str) -> str:
    return f"link:{run_id}"
