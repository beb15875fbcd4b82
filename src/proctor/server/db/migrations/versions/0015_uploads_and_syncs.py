"""Uploads of datasets in parts; the commits of sources and the log of their syncs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "dataset_uploads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("visibility", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("touched_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner"], ["namespaces.name"], name=op.f("fk_dataset_uploads_owner"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_uploads")),
        comment="Files that arrive in parts; what has arrived of one is in the data folder.",
    )
    op.create_index("ix_dataset_uploads_person", "dataset_uploads", ["person"], unique=False)
    with op.batch_alter_table("sources") as table:
        table.add_column(sa.Column("branches", sa.JSON(), nullable=False, server_default="[]"))
        table.add_column(sa.Column("history", sa.JSON(), nullable=False, server_default="[]"))
    op.create_table(
        "source_commits",
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("commit_sha", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("committed_at", sa.Double(), nullable=False),
        sa.Column("rollouts", sa.JSON(), nullable=False),
        sa.Column("recipes", sa.JSON(), nullable=False),
        sa.Column("fetched_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_source_commits_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", "commit_sha", name=op.f("pk_source_commits")),
        comment="What commits hold; those that were fetched last are kept.",
    )
    op.create_table(
        "source_syncs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("log", sa.JSON(), nullable=False),
        sa.Column("commit_sha", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_source_syncs_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source_syncs")),
    )
    op.create_index("ix_source_syncs_source_id", "source_syncs", ["source_id", "started_at"], unique=False)
