"""Git repositories, and the runs that came from them."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from proctor.server.db.schema.metadata import metadata

sources = Table(
    "sources",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("repository", Text, nullable=False),  # the same for every spelling of the address
    Column("sealed", LargeBinary, nullable=False),  # JSON: credentials, and the webhook's secret
    Column("has_credentials", Boolean, nullable=False),
    Column("known_hosts", Text, nullable=False),  # of its ssh server, as seen first
    Column("branch", Text, nullable=False),  # this and the following: as fetched last
    Column("commit_sha", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("committed_at", Double),
    Column("rollouts", JSON, nullable=False),
    Column("problem", Text, nullable=False),
    Column("synced_at", Double),
    Column("created_at", Double, nullable=False),
    Column("branches", JSON, nullable=False, server_default="[]"),
    Column("history", JSON, nullable=False, server_default="[]"),  # the last commits of the branch
    UniqueConstraint("owner", "name"),
)
source_commits = Table(
    "source_commits",
    metadata,
    Column("source_id", Text, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    Column("commit_sha", Text, primary_key=True),
    Column("author", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("committed_at", Double, nullable=False),
    Column("rollouts", JSON, nullable=False),
    Column("recipes", JSON, nullable=False),
    Column("fetched_at", Double, nullable=False),
    comment="What commits hold; those that were fetched last are kept.",
)
source_syncs = Table(
    "source_syncs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("source_id", Text, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("cause", Text, nullable=False),  # who asked: a user, or the webhook
    Column("server", Text),  # which fetches it
    Column("branch", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("log", JSON, nullable=False),
    Column("commit_sha", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
)
Index("ix_source_syncs_source_id", source_syncs.c.source_id, source_syncs.c.started_at)
source_builds = Table(
    "source_builds",
    metadata,
    Column("source_id", Text, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    Column("commit_sha", Text, primary_key=True),
    Column("rollout", Text, primary_key=True),
    Column("version_id", Text, ForeignKey("versions.id", ondelete="CASCADE"), nullable=False),
    Column("files", JSON, nullable=False),
    Column("author", Text, nullable=False),
    Column("subject", Text, nullable=False),
)
run_origins = Table(
    "run_origins",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("source", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("rollout", Text, nullable=False),
    Column("entrypoint", Text, nullable=False),
    Column("commit_sha", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("dataset", JSON, nullable=False),
    Column("config_hash", Text, nullable=False),
    Column("recipe", JSON, nullable=False),
)
Index("ix_run_origins_repository", run_origins.c.repository)
Index("ix_run_origins_config_hash", run_origins.c.config_hash)
