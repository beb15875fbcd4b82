"""What people say of runs: notes, tags that they change, comments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("runs", sa.Column("note", sa.Text(), server_default="", nullable=False))
    op.add_column("runs", sa.Column("revision", sa.Integer(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("edited_at", sa.Double(), nullable=True))
    op.add_column("runs", sa.Column("editors", sa.JSON(), nullable=True))
    op.create_index("ix_runs_edited_at", "runs", ["edited_at"], unique=False)
    op.create_table(
        "run_comments",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("task_key", sa.Text(), nullable=True),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("edited_at", sa.Double(), nullable=True),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.Column("deleted_by", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["author"], ["users.name"], name=op.f("fk_run_comments_author")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_run_comments_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_comments")),
    )
    op.create_index("ix_run_comments_run_id", "run_comments", ["run_id", "created_at", "id"], unique=False)
    op.create_index("ix_run_comments_author", "run_comments", ["author"], unique=False)
