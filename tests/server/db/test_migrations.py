"""The steps that make the tables, and the page that names them, say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.errors import ConfigError
from proctor.server.db.database import Database, sqlite_url
from proctor.server.db.migrate import find_schema_differences, migrate


def test_the_migrations_make_exactly_the_tables_that_are_used(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path / "proctor.db"))
    migrate(database)
    assert database.read_now(find_schema_differences) == []
    database.close()


def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path / "proctor.db"))
    migrate(database)
    migrate(database)
    assert database.read_now(find_schema_differences) == []
    database.close()


@pytest.mark.parametrize("url", ["mysql://localhost/x", "nonsense", "oracle://x"])
def test_a_database_of_another_kind_is_refused_in_one_sentence(url: str) -> None:
    with pytest.raises(ConfigError, match="database"):
        Database(url)


def test_a_database_that_does_not_answer_is_told_with_its_address_but_without_the_password() -> None:
    database = Database("postgresql://ada:hunter2@127.0.0.1:1/none")
    with pytest.raises(ConfigError, match=r"Cannot use the database .*127\.0\.0\.1:1/none") as told:
        migrate(database)
    assert "hunter2" not in str(told.value)
    database.close()
