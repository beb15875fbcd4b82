"""Databases with all tables and no rows, copied from one that was migrated once: migrating takes longer than
most tests."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from proctor.server.db.database import Database, sqlite_url
from proctor.server.db.migrate import migrate
from proctor.server.private_files import create_private
from tests.server.postgres import Cluster

TEMPLATE = "migrated"


def write_sqlite(file: Path) -> str:
    """Write such a database to a new file; returns its address."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with create_private(file) as made:
        made.write(empty_sqlite())
    return sqlite_url(file)


@cache
def empty_sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proctor.db"
        migrate_and_close(sqlite_url(file))
        return file.read_bytes()


def create_postgres(cluster: Cluster) -> str:
    """Create such a database; returns its address."""
    return cluster.fresh(prepare_template(cluster))


@cache
def prepare_template(cluster: Cluster) -> str:
    migrate_and_close(cluster.url(cluster.create_database(TEMPLATE)))
    return TEMPLATE


def migrate_and_close(url: str) -> None:
    database = Database(url)
    migrate(database)
    database.close()
