"""What transactions were committed."""

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
