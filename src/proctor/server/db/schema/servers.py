"""What the servers of one database share."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Index, LargeBinary, Table, Text

from proctor.server.db.schema.metadata import metadata

creations = Table(
    "creations",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("response", LargeBinary, nullable=False),  # sealed, with a hash of the request
    Column("at", Double, nullable=False),
    comment="What creates with an idempotency key were answered, so that the same is answered again.",
)
commit_marks = Table(
    "commit_marks",
    metadata,
    Column("id", Text, primary_key=True),  # of a connection
    Column("number", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    comment="The last transaction of each connection to PostgreSQL that changed something.",
)
server_settings = Table(
    "server_settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    comment="What the operator chose at the last start, where rows depend on it.",
)
servers = Table(
    "servers",
    metadata,
    Column("id", Text, primary_key=True),  # of a process
    Column("server", Text, nullable=False),  # of its data folder
    Column("url", Text, nullable=False),  # for the other servers
    Column("version", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    comment="The processes that serve this database, each as long as it says so.",
)
leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("term", BigInteger, nullable=False),  # one more for each holder
    Column("until", Double, nullable=False),
    Column("is_wanted", Boolean, nullable=False),  # the work was requested again while it was under way
    comment="What only one of the servers does at a time.",
)
announcements = Table(
    "announcements",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("audience", JSON, nullable=False),
    comment="Changes that feeds tell of and that no other table shows; kept for an hour.",
)
Index("ix_announcements_at", announcements.c.at)
