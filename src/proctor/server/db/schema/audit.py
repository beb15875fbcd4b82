"""The audit log."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Double, Index, Table, Text

from proctor.server.db.schema.metadata import metadata

audit_entries = Table(
    "audit_entries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("user", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("details", JSON, nullable=False),
    Column("token_id", Text, nullable=False),
    Column("address", Text, nullable=False),
    comment="Who changed what. It outlives those it names, so it refers to no other table.",
)
Index("ix_audit_entries_at", audit_entries.c.at, audit_entries.c.id)
Index("ix_audit_entries_user", audit_entries.c.user, audit_entries.c.at)
