"""Sandboxes, instances and served environments."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Double, ForeignKey, Index, Table, Text

from proctor.server.db.schema.metadata import metadata

sandboxes = Table(
    "places",  # as the first release called them
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # sandbox | instance | session
    Column("owner", Text, nullable=False),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE")),
    Column("server", Text, nullable=False),  # that created it
    Column("backend", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("spec", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("ended_at", Double),
)
Index("ix_places_run_id", sandboxes.c.run_id)
