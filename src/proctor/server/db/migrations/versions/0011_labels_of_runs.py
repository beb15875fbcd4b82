"""What people say of a run's rollouts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "run_labels",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["users.name"], name=op.f("fk_run_labels_person")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_run_labels_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "task", "number", "person", name=op.f("pk_run_labels")),
        comment="What people say of rollouts.",
    )
    op.create_index("ix_run_labels_person", "run_labels", ["person"], unique=False)
