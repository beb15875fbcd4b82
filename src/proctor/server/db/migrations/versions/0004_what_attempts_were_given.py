"""Values that attempts were given, hosts that tokens are bound to, and answers that say what was asked."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "attempt_secrets",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_attempt_secrets_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "attempt", name=op.f("pk_attempt_secrets")),
        comment="What each attempt was given, so that none of it is read in what the run says.",
    )
    with op.batch_alter_table("tokens", schema=None) as batch_op:
        batch_op.add_column(sa.Column("host_key_hash", sa.LargeBinary(), nullable=True))
    # Answers were kept for a user; they are now kept for a token, with what was asked inside the seal.
    op.execute("DELETE FROM creations")
    with op.batch_alter_table("creations", schema=None) as batch_op:
        batch_op.drop_column("request_hash")
