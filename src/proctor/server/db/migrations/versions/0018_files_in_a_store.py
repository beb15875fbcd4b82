"""Which object of the store holds which file, and which rows."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_table(
        "files",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("touched_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_files")),
        sa.UniqueConstraint("key", name=op.f("uq_files_key")),
        comment="Files in the store, which versions and datasets name by their hash.",
    )
    op.create_index("ix_files_touched_at", "files", ["touched_at"], unique=False)
    op.create_table(
        "run_segments",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_run_segments_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_run_segments")),
        comment="Rows of runs that have ended, in the store.",
    )
    op.create_index("ix_run_segments_sha256", "run_segments", ["sha256"], unique=False)
    op.add_column("runs", sa.Column("archived_at", sa.Double(), nullable=True))
    op.add_column("rollouts", sa.Column("segment", sa.Integer(), nullable=True))
    op.add_column("rollouts", sa.Column("segment_start", sa.BigInteger(), nullable=True))
    op.add_column("rollouts", sa.Column("segment_bytes", sa.Integer(), nullable=True))
    op.get_bind().execute(
        sa.text(
            "INSERT INTO files (sha256, key, size, touched_at) "
            "SELECT sha256, substr(sha256, 1, 2) || '/' || sha256, max(size), :now FROM ("
            "SELECT wheel_sha256 AS sha256, wheel_size AS size FROM versions "
            "UNION ALL SELECT source_sha256, source_size FROM versions "
            "UNION ALL SELECT sha256, size FROM dataset_versions"
            ") AS named GROUP BY sha256"
        ),
        {"now": time.time()},
    )
