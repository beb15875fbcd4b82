"""Which transactions were committed, who may run an environment, and who may read a run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

runs = sa.table("runs", sa.column("team"), sa.column("visibility"))


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
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("visibility", sa.Text(), nullable=False, server_default="private"))
    op.execute(runs.update().where(runs.c.team.is_not(None)).values(visibility="team"))
    op.create_table(
        "run_links",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("link_hash", sa.LargeBinary(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_run_links_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_links")),
    )
