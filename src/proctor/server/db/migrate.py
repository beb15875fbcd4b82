"""Upgrade a database to the newest schema, one numbered step after the other.

Several servers may start at once: one of them migrates, the others wait for it. Servers of the previous
release keep running meanwhile, so steps only add (CONTRIBUTING.md, "Change the schema"); a step that removes
something names in `oldest_release` the oldest schema whose servers still run, and older ones refuse to start.
Knows nothing of the steps.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import SQLAlchemyError

from proctor.errors import ConfigError
from proctor.server.db.availability import describe_database_error
from proctor.server.db.database import Database
from proctor.server.db.locks import Lock, lock
from proctor.server.db.tables import metadata, server_settings
from proctor.support.logs import log

MIGRATIONS_FOLDER = Path(__file__).parent / "migrations"
OLDEST_RELEASE = "oldest_release"
"""In `server_settings`: the oldest schema whose servers still run on this one."""
FIRST_RELEASE = "0017"
"""The first schema whose servers look for that."""


def migrate(database: Database) -> None:
    try:
        database.write_now(upgrade)
    except SQLAlchemyError as error:
        where = database.url.render_as_string(hide_password=True)
        raise ConfigError(f"Cannot use the database {where}: {describe_database_error(error)}") from error
    except CommandError as error:
        raise ConfigError(f"The database belongs to another version of Proctor: {error}") from error


def upgrade(connection: Connection) -> None:
    lock(connection, Lock.MIGRATION)
    scripts = ScriptDirectory(str(MIGRATIONS_FOLDER))
    newest = scripts.get_current_head() or ""
    found = MigrationContext.configure(connection).get_current_revision()
    if found is not None and found > newest:
        check_compatible(connection, found, newest)
        log.warning(
            "the database was migrated by a newer release (schema %s, this one knows %s); upgrade this "
            "server soon",
            found,
            newest,
        )
        return
    command.upgrade(build_alembic_config(connection), "head")
    save_oldest_release(connection, find_oldest_release(scripts))


def check_compatible(connection: Connection, found: str, newest: str) -> None:
    """Refuse a database that a newer release has changed too much for this one."""
    query = select(server_settings.c.value).where(server_settings.c.name == OLDEST_RELEASE)
    oldest = connection.execute(query).scalar() or found
    if newest < oldest:
        raise ConfigError(
            f"The database belongs to a newer version of Proctor: its schema {found} serves releases with "
            f"schema {oldest} or newer, and this one has {newest}; upgrade Proctor here."
        )


def find_oldest_release(scripts: ScriptDirectory) -> str:
    named = (getattr(script.module, OLDEST_RELEASE, FIRST_RELEASE) for script in scripts.walk_revisions())
    return max(named, default=FIRST_RELEASE)


def save_oldest_release(connection: Connection, oldest: str) -> None:
    of_release = server_settings.c.name == OLDEST_RELEASE
    if connection.execute(select(server_settings.c.value).where(of_release)).scalar() != oldest:
        connection.execute(delete(server_settings).where(of_release))
        connection.execute(insert(server_settings).values(name=OLDEST_RELEASE, value=oldest))


def build_alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    config.attributes["connection"] = connection
    return config


def find_schema_differences(connection: Connection) -> list[object]:
    """The differences between tables.py and what the migrations create."""
    return list(compare_metadata(MigrationContext.configure(connection), metadata))
