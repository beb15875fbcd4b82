"""Secrets and variables."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Integer, LargeBinary, Table, Text, UniqueConstraint

from proctor.server.db.schema.metadata import metadata

run_secrets = Table(
    "run_secrets",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)
attempt_secrets = Table(
    "attempt_secrets",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),  # JSON: values by name
    comment="What each attempt was given, so that none of it is read in what the run says.",
)
secrets = Table(
    "secrets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name", ondelete="CASCADE")),
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="CASCADE")),
    Column("name", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("description", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("owner", "name"),
    UniqueConstraint("environment_id", "name"),
)
secret_links = Table(
    "secret_links",
    metadata,
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="CASCADE"), primary_key=True),
    Column("secret_id", Text, ForeignKey("secrets.id", ondelete="CASCADE"), primary_key=True),
)
seals = Table(
    "seals",
    metadata,
    Column("name", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("at", Double, nullable=False),
    comment="A value that the server's key has sealed, to know the key again.",
)
variables = Table(
    "variables",
    metadata,
    Column("id", Text, primary_key=True),
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("environment_id", "name"),
)
