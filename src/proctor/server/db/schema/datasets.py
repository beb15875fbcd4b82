"""Datasets and their versions."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from proctor.server.db.schema.metadata import metadata

datasets = Table(
    "datasets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name"), nullable=False),
    Column("name", Text, nullable=False),
    Column("visibility", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("owner", "name"),
)
dataset_versions = Table(
    "dataset_versions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset_id", Text, ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),  # in the order of pushes; the highest is the latest
    Column("sha256", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("format", Text, nullable=False),
    Column("rows", BigInteger),  # none: not counted
    Column("columns", JSON, nullable=False),
    Column("pushed_by", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("pushed_at", Double, nullable=False),
    UniqueConstraint("dataset_id", "sha256"),
)
Index("ix_dataset_versions_sha256", dataset_versions.c.sha256)
Index("ix_dataset_versions_pushed_by", dataset_versions.c.pushed_by)
run_datasets = Table(
    "run_datasets",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("version_id", Text, ForeignKey("dataset_versions.id", ondelete="CASCADE"), primary_key=True),
    comment="The versions that a run's settings name.",
)
Index("ix_run_datasets_version_id", run_datasets.c.version_id)
dataset_uploads = Table(
    "dataset_uploads",
    metadata,
    Column("id", Text, primary_key=True),
    Column("person", Text, nullable=False),
    Column("owner", Text, ForeignKey("namespaces.name", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("visibility", Text),  # none: unchanged, or private
    Column("description", Text),
    Column("created_at", Double, nullable=False),
    Column("touched_at", Double, nullable=False),
    comment="Files that arrive in parts; what has arrived of one is in the data folder.",
)
Index("ix_dataset_uploads_person", dataset_uploads.c.person)
