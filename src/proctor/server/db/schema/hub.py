"""Environments and their versions."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from proctor.server.db.schema.metadata import metadata

environments = Table(
    "environments",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name"), nullable=False),
    Column("name", Text, nullable=False),
    Column("visibility", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("tags", JSON, nullable=False),
    Column("forked_from", Text),
    Column("run_policy", Text),  # none: the server's
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("owner", "name"),
)
roles = Table(
    "roles",
    metadata,
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="CASCADE"), primary_key=True),
    Column("holder", Text, ForeignKey("namespaces.name", ondelete="CASCADE"), primary_key=True),
    Column("role", Text, nullable=False),
)
versions = Table(
    "versions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("environment_id", Text, ForeignKey("environments.id", ondelete="CASCADE"), nullable=False),
    Column("version", Text, nullable=False),
    Column("number", Integer, nullable=False),  # in the order of pushes
    Column("content_hash", Text, nullable=False),
    Column("wheel_name", Text, nullable=False),
    Column("wheel_sha256", Text, nullable=False),
    Column("wheel_size", BigInteger, nullable=False),
    Column("source_sha256", Text, nullable=False),
    Column("source_size", BigInteger, nullable=False),
    Column("requires_python", Text, nullable=False),
    Column("dependencies", JSON, nullable=False),
    Column("secrets", JSON, nullable=False),
    Column("files", JSON, nullable=False),  # [[path, size], …]
    Column("metadata_text", Text, nullable=False),  # the wheel's METADATA, for PEP 658
    Column("pushed_by", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("check_status", Text, nullable=False),
    Column("check_message", Text, nullable=False),
    Column("check_log", Text, nullable=False),
    Column("check_tasks", Integer),
    Column("check_seconds", Double),
    Column("check_facts", JSON, nullable=False),  # sizes of prompts, for estimates
    Column("check_details", LargeBinary),  # JSON of a VersionDetails
    Column("check_lease_until", Double),
    Column("check_host", Text),  # the token of the host that checks it
    Column("check_leases", Integer, nullable=False, default=0),  # how often it was leased
    Column("lock", Text),
    UniqueConstraint("environment_id", "version"),
)
version_tasks = Table(
    "version_tasks",
    metadata,
    Column("version_id", Text, ForeignKey("versions.id", ondelete="CASCADE"), primary_key=True),
    Column("place", Integer, primary_key=True),  # in the environment's order
    Column("slug", Text, nullable=False),
    Column("task", LargeBinary, nullable=False),  # JSON of a TaskInfo
)
