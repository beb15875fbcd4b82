"""Which files of the store hold which events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table(
        "event_segments",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("first_seq", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_event_segments_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "first_seq", name=op.f("pk_event_segments")),
        comment="The first events of runs that have ended, in the store; the others are in the database.",
    )
    op.create_index("ix_event_segments_sha256", "event_segments", ["sha256"], unique=False)
    op.add_column("runs", sa.Column("log_read_at", sa.Double(), nullable=True))
    op.execute("UPDATE runs SET archived_at = NULL")  # their rows were moved, their events were not
