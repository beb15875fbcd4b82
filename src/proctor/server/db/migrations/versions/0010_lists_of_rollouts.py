"""What lists and reports read of rollouts beside their rows; the score, sweep and tags of runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "rollout_entries",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("entry", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_rollout_entries_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "place", name=op.f("pk_rollout_entries")),
        comment="What lists and reports read of a rollout, so that they need not read its row.",
    )
    op.add_column("runs", sa.Column("score", sa.JSON(), nullable=True))
    op.add_column("runs", sa.Column("suite", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("tags", sa.JSON(), nullable=True))
    op.create_index("ix_runs_suite", "runs", ["suite"], unique=False)
