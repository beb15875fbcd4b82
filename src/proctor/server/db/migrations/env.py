"""What alembic runs to apply a step: inside the transaction that it was given."""

from __future__ import annotations

from alembic import context

from proctor.server.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
