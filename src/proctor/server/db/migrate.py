"""Upgrade a database to the newest schema, one numbered step after the other.

Several servers may start at once: one of them migrates, the others wait for it. Knows nothing of the steps.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.util.exc import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from proctor.errors import ConfigError
from proctor.server.db.availability import describe_database_error
from proctor.server.db.database import Database
from proctor.server.db.tables import metadata

MIGRATIONS_FOLDER = Path(__file__).parent / "migrations"
MIGRATION_LOCK_ID = 7_264_110_395
"""The same for all servers on one database, and presumably unused by anything else there."""


def migrate(database: Database) -> None:
    try:
        database.write_now(upgrade)
    except SQLAlchemyError as error:
        where = database.url.render_as_string(hide_password=True)
        raise ConfigError(f"Cannot use the database {where}: {describe_database_error(error)}") from error
    except CommandError as error:
        raise ConfigError(f"The database belongs to another version of Proctor: {error}") from error


def upgrade(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK_ID})
    command.upgrade(build_alembic_config(connection), "head")


def build_alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    config.attributes["connection"] = connection
    return config


def find_schema_differences(connection: Connection) -> list[object]:
    """The differences between tables.py and what the migrations create."""
    return list(compare_metadata(MigrationContext.configure(connection), metadata))
