"""What a run stores is counted, so that it can be limited."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

runs = sa.table("runs", sa.column("id"), sa.column("row_bytes"), sa.column("log_bytes"))
rollouts = sa.table("rollouts", sa.column("run_id"), sa.column("row"))
events = sa.table("events", sa.column("run_id"), sa.column("event"))


def upgrade() -> None:
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("row_bytes", sa.BigInteger(), nullable=False, server_default="0"))
        batch_op.add_column(sa.Column("log_bytes", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(
        runs.update().values(
            row_bytes=total(rollouts.c.row, rollouts.c.run_id),
            log_bytes=total(events.c.event, events.c.run_id),
        )
    )


def total(content: sa.ColumnClause[bytes], run_id: sa.ColumnClause[str]) -> sa.ScalarSelect[int]:
    size = sa.func.coalesce(sa.func.sum(sa.func.length(content)), 0)
    return sa.select(size).where(run_id == runs.c.id).scalar_subquery()
