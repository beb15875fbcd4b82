"""The values that each attempt of a run received, stored sealed: a later change does not reach an attempt.

A restarted server learns from here what to redact from an attempt's log. Knows nothing of hosts.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from sqlalchemy import Connection, insert, select

from proctor.server.db.tables import attempt_secrets
from proctor.server.secrets.vault import Vault


def save_attempt_secrets(
    connection: Connection, vault: Vault, run_id: str, attempt: int, values: Mapping[str, str]
) -> None:
    sealed = vault.seal(msgspec.json.encode(values), meant_for_attempt(run_id, attempt))
    connection.execute(insert(attempt_secrets).values(run_id=run_id, attempt=attempt, sealed=sealed))


def read_attempt_secrets(connection: Connection, vault: Vault, run_id: str) -> dict[int, dict[str, str]]:
    """Values by name, for each attempt."""
    rows = connection.execute(select(attempt_secrets).where(attempt_secrets.c.run_id == run_id))
    return {
        row.attempt: msgspec.json.decode(
            vault.open(row.sealed, meant_for_attempt(run_id, row.attempt)), type=dict[str, str]
        )
        for row in rows
    }


def meant_for_attempt(run_id: str, attempt: int) -> str:
    return f"attempt:{run_id}:{attempt}"
