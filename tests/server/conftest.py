"""Servers and databases for tests, on SQLite, and on PostgreSQL where a test asks for both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.server.db.database import Database
from tests.server.empty_database import create_postgres, write_sqlite
from tests.server.postgres import Cluster, cluster
from tests.server.serving import Served, serving, settings_in


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    with cluster() as started:
        yield started


@pytest.fixture(scope="session")
def restartable() -> Iterator[Cluster]:
    """A PostgreSQL to stop and start, which no other test uses meanwhile."""
    with cluster() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database with all tables and no rows, of either kind."""
    if request.param == "sqlite":
        return write_sqlite(tmp_path / "proctor.db")
    return create_postgres(request.getfixturevalue("postgres"))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A database with all tables, of either kind."""
    made = Database(database_url)
    yield made
    made.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server on SQLite without runs of its own."""
    with serving(settings_in(tmp_path)) as server:
        yield server


@pytest.fixture
def served_on_both(tmp_path: Path, database_url: str) -> Iterator[Served]:
    """A server without runs of its own, on either database."""
    with serving(settings_in(tmp_path, database=database_url)) as server:
        yield server
