"""Money."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, Table, Text, false

from proctor.server.db.schema.metadata import metadata

accounts = Table(
    "accounts",
    metadata,
    Column("owner", Text, ForeignKey("namespaces.name"), primary_key=True),
    Column("balance", BigInteger),  # none: no limit
    Column("spent", BigInteger, nullable=False),
)
entries = Table(
    "entries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("run_id", Text),
    Column("reference", Text, nullable=False, unique=True),  # so that nothing is booked twice
    Column("note", Text, nullable=False),
    Column("at", Double, nullable=False),
)
Index("ix_entries_owner", entries.c.owner, entries.c.at)
holds = Table(
    "holds",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name"), nullable=False),
    Column("amount", BigInteger, nullable=False),
)
Index("ix_holds_owner", holds.c.owner)
reservations = Table(
    "reservations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, ForeignKey("namespaces.name"), nullable=False),  # the payer
    Column("run_id", Text),
    Column("amount", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),  # the process that made the call
    Column("expires_at", Double, nullable=False),
    comment="The most that calls under way can cost.",
)
Index("ix_reservations_owner", reservations.c.owner)
Index("ix_reservations_holder", reservations.c.holder)
calls = Table(
    "calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("owner", Text, nullable=False),  # the payer
    Column("user", Text, nullable=False),
    Column("run_id", Text),
    Column("model", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("cost", BigInteger),
    Column("is_estimate", Boolean, nullable=False, server_default=false()),  # the provider reported no usage
    comment="Answered requests of the inference gateway.",
)
Index("ix_calls_run_id", calls.c.run_id)
Index("ix_calls_owner", calls.c.owner, calls.c.at)
prices = Table(
    "prices",
    metadata,
    Column("model", Text, primary_key=True),
    Column("input", Double, nullable=False),  # dollars per million tokens
    Column("output", Double, nullable=False),
    Column("cached", Double),
    comment="Instead of the list price.",
)
