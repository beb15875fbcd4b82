"""Which run a run scored again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("runs", sa.Column("rescored_from", sa.Text(), nullable=True))
    op.create_index("ix_runs_rescored_from", "runs", ["rescored_from"], unique=False)
