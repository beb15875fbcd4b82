"""What a check learns of how a version is played: arguments, defaults, an example, rewards, tools."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("versions", sa.Column("check_details", sa.LargeBinary(), nullable=True))
