"""Files in the store."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Table, Text

from proctor.server.db.schema.metadata import metadata

files = Table(
    "files",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("key", Text, nullable=False, unique=True),  # of the object in the store; never used again
    Column("size", BigInteger, nullable=False),
    Column("touched_at", Double, nullable=False),  # when it was stored, or referred to anew
    comment="Files in the store, which versions and datasets name by their hash.",
)
Index("ix_files_touched_at", files.c.touched_at)
