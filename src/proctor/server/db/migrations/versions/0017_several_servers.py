"""Several servers on one database: leases, who is there, and what followers of any of them are told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "servers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        comment="The processes that serve this database, each as long as it says so.",
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.Column("is_wanted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        comment="What only one of the servers does at a time.",
    )
    op.create_table(
        "announcements",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("audience", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        comment="Changes that feeds tell of and that no other table shows; kept for an hour.",
    )
    op.create_index("ix_announcements_at", "announcements", ["at"], unique=False)
    op.add_column("source_syncs", sa.Column("server", sa.Text(), nullable=True))
