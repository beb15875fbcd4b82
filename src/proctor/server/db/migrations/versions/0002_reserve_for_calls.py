"""Reserve the worst case of a call, and mark costs that are estimated."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "reservations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["owner"], ["namespaces.name"], name=op.f("fk_reservations_owner")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reservations")),
        comment="The most that calls under way can cost.",
    )
    with op.batch_alter_table("reservations", schema=None) as batch_op:
        batch_op.create_index("ix_reservations_owner", ["owner"], unique=False)
        batch_op.create_index("ix_reservations_holder", ["holder"], unique=False)
    op.add_column("calls", sa.Column("is_estimate", sa.Boolean(), nullable=False, server_default=sa.false()))
