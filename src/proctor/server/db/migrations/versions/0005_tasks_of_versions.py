"""The tasks of a version, as its check found them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "version_tasks",
        sa.Column("version_id", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("task", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_id"], ["versions.id"], name=op.f("fk_version_tasks_version_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("version_id", "place", name=op.f("pk_version_tasks")),
    )
