"""Data that earlier versions of the server wrote is there after an upgrade, whole and readable.

`write_schemas.py` says how a database of each numbered schema came into `schemas/`.
"""

from __future__ import annotations

import io
import itertools
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, MetaData, create_engine, func, select

from proctor.server.db.database import Database, sqlite_url
from proctor.server.db.migrate import find_schema_differences, migrate
from proctor.server.db.tables import metadata
from proctor.server.people.tokens import default_scopes, make_token
from proctor.server.secrets.vault import KEY_FILE_VARIABLE, new_key
from tests.server.db.filling import REGISTRY, ROWS, fill
from tests.server.db.write_schemas import (
    SCHEMAS,
    copy_rows,
    hash_file,
    migration_files,
    read_sums,
    upgrade_to,
)
from tests.server.postgres import Cluster
from tests.server.serving import Api, serving, settings_in
from tests.server.workplace import Workplace

ROOT = Path(__file__).parents[3]
FORGOTTEN = {"creations"}
"""Tables that migration 0004 empties: answers that were kept for the idempotency keys of a day."""
EMPTY_AT_FIRST = {"places", "creations", "attempt_secrets", "reservations"}
REVISIONS = sorted(migration_files())
HOW = "run `python -m tests.server.db.write_schemas` once the migration is final, and commit what it writes"


def test_a_migration_that_has_landed_is_never_edited() -> None:
    files = {path.name: path for path in migration_files().values()}
    sums = read_sums()
    assert files.keys() == sums.keys(), HOW
    changed = [name for name, path in files.items() if hash_file(path) != sums[name]]
    assert changed == [], "databases out there were made by the former text; write another migration instead"


def test_every_numbered_schema_is_written_down() -> None:
    assert sorted(path.stem for path in SCHEMAS.glob("*.sql")) == REVISIONS, HOW


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def written(revision: str, tmp_path: Path) -> Path:
    """A SQLite file as a server with this schema left it."""
    file = tmp_path / "data" / "proctor.db"
    file.parent.mkdir(mode=0o700)
    with closing(sqlite3.connect(file)) as database:
        database.executescript((SCHEMAS / f"{revision}.sql").read_text())
    return file


@pytest.fixture(params=["sqlite", "postgresql"])
def old_database(request: pytest.FixtureRequest, written: Path, revision: str) -> Iterator[Database]:
    """A database of this schema with its rows, of either kind."""
    if request.param == "sqlite":
        database = Database(sqlite_url(written))
    else:
        cluster: Cluster = request.getfixturevalue("postgres")
        database = Database(cluster.fresh())
        database.write_now(upgrade_to, revision)
        with create_engine(sqlite_url(written)).connect() as source:
            database.write_now(lambda target: copy_rows(source, target))
    yield database
    database.close()


def count_rows(connection: Connection) -> dict[str, int]:
    found = MetaData()
    found.reflect(connection)
    counts = {
        name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for name, table in found.tables.items()
    }
    return {name: count for name, count in counts.items() if name != "alembic_version"}


def test_no_row_of_any_earlier_schema_is_lost_by_an_upgrade(old_database: Database) -> None:
    before = old_database.read_now(count_rows)
    assert all(count for name, count in before.items() if name not in EMPTY_AT_FIRST), before
    migrate(old_database)
    assert old_database.read_now(find_schema_differences) == []
    after = old_database.read_now(count_rows)
    assert after.keys() == set(metadata.tables)
    for name, count in before.items():
        assert after[name] >= count or name in FORGOTTEN, name


def test_a_server_reads_what_a_server_with_an_earlier_schema_wrote(written: Path, tmp_path: Path) -> None:
    (tmp_path / "endpoints.toml").write_text(REGISTRY)
    (tmp_path / "data-root-token").write_text("unused: the database already has an admin")
    settings = settings_in(tmp_path, endpoints=tmp_path / "endpoints.toml", forget_secrets=True)
    with serving(settings) as server:

        def add_token(connection: Connection) -> str:
            scopes = default_scopes(False)
            return make_token(connection, kind="user", user="ada", scopes=scopes, expires_at=None).secret

        ada = Api(server.url, server.platform.database.write_now(add_token))
        read_everything(ada)


def read_everything(ada: Api) -> None:
    """What was written is listed, described and exported as if this server had written it."""
    runs: dict[str, Any] = {run["kind"]: run for run in ada.get("/runs")["items"]}
    upload, hosted = runs["local"]["id"], runs["hosted"]["id"]
    progress = {"settled": 1, "scored": 1, "failed": 1, "mean_reward": 1.0}
    assert runs["local"]["progress"].items() >= progress.items()
    assert ada.get(f"/runs/{upload}")["summary"]["reward"]["mean"] == 1.0
    kept = ada.get(f"/runs/{upload}/rows")["items"]
    assert [(row["example_id"], row["outcome"]) for row in kept] == [
        (row["example_id"], row["outcome"]) for row in ROWS
    ]
    assert "hello" in [event.get("text") for event in ada.get(f"/runs/{upload}/events")["items"]]
    assert (runs["hosted"]["status"], runs["hosted"]["name"]) == ("pending", "nightly")
    assert ada.get("/environments/ada/sums")["latest"]["version"] == "0.1.0"
    assert [each["name"] for each in ada.get("/environments/ada/sums/variables")["items"]] == ["REGION"]
    assert ada.get("/teams")["items"] == [{"team": "robots", "role": "admin"}]
    assert ada.get("/balance")["held_usd"] == 1.0
    assert ada.get("/usage")["items"][0]["requests"] == 1
    ada.post(f"/runs/{hosted}/stop")


# Expand, then contract


FIRST_RULED = "0017"


class ColumnRules(NamedTuple):
    is_required: bool
    has_default: bool


def read_columns(revision: str) -> dict[str, dict[str, ColumnRules]]:
    """The columns of each table of a numbered schema."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript((SCHEMAS / f"{revision}.sql").read_text())
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            table: {
                name: ColumnRules(bool(required), default is not None)
                for _, name, _, required, default, _ in database.execute(f"PRAGMA table_info({table})")
            }
            for (table,) in tables
        }


def find_broken_promises(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What a server that knows the old schema could stumble over in the new one."""
    missing = [table for table in old if table not in new]
    for table in old.keys() & new.keys():
        before, after = old[table], new[table]
        missing += [f"{table}.{name}" for name in before if name not in after]
        missing += [
            f"{table}.{name}"
            for name, rules in after.items()
            if rules.is_required
            and not rules.has_default
            and not (name in before and before[name].is_required)
        ]
    return missing


def test_a_migration_only_adds_unless_it_says_which_servers_still_run() -> None:
    """CONTRIBUTING.md, "Change the schema"."""
    for older, newer in itertools.pairwise(REVISIONS):
        broken = (
            find_broken_promises(read_columns(older), read_columns(newer)) if newer >= FIRST_RULED else []
        )
        assert not broken or "oldest_release = " in migration_files()[newer].read_text(), (newer, broken)
    first, last = read_columns(REVISIONS[0]), read_columns(REVISIONS[-1])
    assert find_broken_promises(last, first), "a schema that lacks tables breaks the promise"


@pytest.fixture
def before_newest_schema(tmp_path: Path) -> Path:
    """The source of the last commit that did not know the newest migration."""
    newest = migration_files()[REVISIONS[-1]].relative_to(ROOT)
    added = git("log", "--diff-filter=A", "--format=%H", "--", str(newest)) or b""
    return unpack_source(f"{added.split()[-1].decode()}~1" if added.split() else "", tmp_path)


@pytest.mark.interop
def test_a_server_of_the_previous_schema_goes_on_while_a_newer_one_migrates_its_database(
    before_newest_schema: Path, tmp_path: Path, postgres: Cluster
) -> None:
    key = tmp_path / "shared.key"
    key.write_bytes(new_key())
    words = ("--runs-at-once", "0", "--default-balance", "1", "--database", postgres.fresh())
    older, newer = tmp_path / "older", tmp_path / "newer"
    for folder in (older, newer):
        folder.mkdir()
    environ = {KEY_FILE_VARIABLE: str(key)}
    old = Workplace(older, *words, environ={**environ, "PYTHONPATH": str(before_newest_schema)})
    new = Workplace(newer, *words, "--files", str(old.data), environ=environ)
    try:
        old.start()
        assert old.root.get("/health")["version"].startswith("previous-")
        new.start()
        filled = fill(old.root, tmp_path / "package")  # on the newer schema
        for server in (old, new):
            ada = Api(server.url, filled.token)
            assert ada("GET", "/environments/ada/sums/versions/latest/wheel").status == 200
        read_everything(Api(new.url, filled.token))
    finally:
        new.stop()
        old.stop()


# The previous commit


def git(*words: str) -> bytes | None:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, timeout=60, check=False)
    return done.stdout if done.returncode == 0 else None


@pytest.fixture
def previous(tmp_path: Path) -> Path:
    """The source of the previous commit, with a version of its own."""
    return unpack_source("HEAD~1", tmp_path)


def unpack_source(commit: str, tmp_path: Path) -> Path:
    archive = git("archive", commit, "src") if commit and (ROOT / ".git").exists() else None
    if archive is None:
        pytest.skip("there is no previous commit here; the numbered schemas are tested all the same")
    folder = tmp_path / "previous"
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")
    module = folder / "src" / "proctor" / "__init__.py"
    module.write_text(module.read_text().replace('__version__ = "', '__version__ = "previous-', 1))
    return folder / "src"


def test_a_data_folder_of_the_previous_commits_server_is_upgraded_by_this_one(
    previous: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    place = Workplace(folder, "--runs-at-once", "0", "--default-balance", "1")
    place.environ["PYTHONPATH"] = str(previous)
    place.start()
    try:
        assert place.root.get("/health")["version"].startswith("previous-"), sys.path
        filled = fill(place.root, tmp_path / "package")
        place.stop()
        del place.environ["PYTHONPATH"]
        place.start()
        assert not place.root.get("/health")["version"].startswith("previous-")
        ada = Api(place.url, filled.token)
        secrets = ada.get("/environments/ada/sums/secrets")["items"]
        assert {secret["name"] for secret in secrets} == {"SHARED_KEY", "SUMS_KEY"}
        assert ada("GET", "/environments/ada/sums/versions/latest/wheel").status == 200
        read_everything(ada)
    finally:
        place.stop()
