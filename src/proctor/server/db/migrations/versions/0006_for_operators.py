"""Which transactions were committed, and who may run an environment."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "commit_marks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_commit_marks")),
        comment="The last transaction of each connection to PostgreSQL that changed something.",
    )
    op.create_table(
        "server_settings",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_server_settings")),
        comment="What the operator chose at the last start, where rows depend on it.",
    )
    with op.batch_alter_table("environments", schema=None) as batch_op:
        batch_op.add_column(sa.Column("run_policy", sa.Text(), nullable=True))
