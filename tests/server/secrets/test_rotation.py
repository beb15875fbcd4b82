"""A new key for the server: everything is sealed anew or nothing, wherever it is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Connection, LargeBinary

from proctor.api.secrets import NewSecret
from proctor.errors import ConfigError
from proctor.server.db.database import Database
from proctor.server.db.tables import metadata, run_secrets
from proctor.server.secrets import attempts, resolution
from proctor.server.secrets.key_check import ensure_key
from proctor.server.secrets.key_lock import KeyLock
from proctor.server.secrets.records import insert_secret
from proctor.server.secrets.rotation import finish_rotation, new_file, rotate
from proctor.server.secrets.sealed_columns import SEALED
from proctor.server.secrets.vault import UnreadableError, Vault, open_vault, read_key
from tests.server.runs import making
from tests.server.serving import serving, settings_in
from tests.server.workplace import Person, workplace

KILLED = """
import os, signal, sys
from pathlib import Path
from proctor.server.db.database import Database
from proctor.server.secrets import rotation

moment, url, file = sys.argv[1:]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if moment == "before the new key is whole":
    rotation.new_key = lambda: b"half"
    rotation.sync_folder = die
elif moment == "before anything is sealed anew":
    rotation.seal_anew = die
elif moment == "before that is kept":
    seal = rotation.seal_anew
    rotation.seal_anew = lambda *words: (seal(*words), die())
elif moment == "before the new key is in place":
    rotation.put_in_place = die
elif moment == "at the very end":
    rotation.sync_folder, sync = lambda folder: None, rotation.sync_folder
    place = rotation.put_in_place
    rotation.put_in_place = lambda file: (place(file), die())
rotation.rotate(Database(url), Path(file))
"""
MOMENTS = [
    "before the new key is whole",
    "before anything is sealed anew",
    "before that is kept",
    "before the new key is in place",
    "at the very end",
]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    open_vault(tmp_path, {})
    return tmp_path / "secret.key"


@pytest.fixture
def filled(database: Database, key: Path) -> Database:
    """A database with a value of each kind."""
    vault = Vault(read_key(key))

    def fill(connection: Connection) -> None:
        making.user(connection)
        making.environment(connection)
        run_id = making.run(connection)
        insert_secret(connection, vault, NewSecret(name="A", value="tomatoes"), owner="ada")
        resolution.save_run_secrets(connection, vault, run_id, {"B": "onions"})
        attempts.save_attempt_secrets(connection, vault, run_id, 1, {"C": "leeks"})

    ensure_key(database, vault)
    database.write_now(fill)
    return database


def values(database: Database, key: Path) -> list[bytes]:
    """Everything that is sealed, opened with a key."""
    vault = Vault(read_key(key))

    def work(connection: Connection) -> list[bytes]:
        return [
            vault.open(row._mapping[column], purpose(row))
            for column, purpose in SEALED
            for row in connection.execute(column.table.select())
        ]

    return database.read_now(work)


ALL = [b"proctor", b"tomatoes", b"onions", b'{"C":"leeks"}']


def test_everything_opens_with_the_new_key_and_nothing_with_the_old(
    filled: Database, key: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old.key"
    old.write_bytes(key.read_bytes())

    done = rotate(filled, key)

    assert (done.values, done.left) == (4, 0)
    assert values(filled, key) == ALL
    with pytest.raises(UnreadableError):
        values(filled, old)
    assert key.stat().st_mode & 0o777 == 0o600
    assert not new_file(key).exists()


def test_every_column_of_sealed_values_is_sealed_anew() -> None:
    hashes = {"tokens.secret_hash", "tokens.host_key_hash", "run_links.link_hash"}
    of_browsers = {"browser_sessions.secret_hash", "login_codes.code_hash"}
    reported = {"rollouts.row", "rollout_entries.entry", "events.event", "version_tasks.task"}
    of_checks = {"versions.check_details"}
    kept_otherwise = hashes | of_browsers | reported | of_checks
    binary = {
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, LargeBinary)
    }
    assert binary - kept_otherwise == {f"{each.column.table.name}.{each.column.name}" for each in SEALED}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_it_leaves_a_database_that_opens(
    filled: Database, key: Path, moment: str
) -> None:
    url = filled.url.render_as_string(hide_password=False)
    words = [sys.executable, "-c", KILLED, moment, url, str(key)]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr

    finish_rotation(filled, key)  # as a server does when it starts

    assert values(filled, key) == ALL
    assert not new_file(key).exists()
    rotate(filled, key)
    assert values(filled, key) == ALL


def test_a_value_that_was_damaged_before_does_not_keep_the_key(filled: Database, key: Path) -> None:
    def damage(connection: Connection) -> None:
        connection.execute(run_secrets.update().values(sealed=b"damaged"))

    filled.write_now(damage)
    done = rotate(filled, key)
    assert (done.values, done.left) == (3, 1)


def test_a_key_of_another_database_is_refused_before_anything_changes(
    filled: Database, key: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    open_vault(tmp_path / "other", {})
    with pytest.raises(ConfigError, match="sealed with another key"):
        rotate(filled, tmp_path / "other" / "secret.key")
    assert values(filled, key) == ALL


def test_the_key_is_not_rotated_under_a_server_that_uses_it(tmp_path: Path, database_url: str) -> None:
    settings = settings_in(tmp_path, database=database_url)
    with serving(settings) as served:
        with pytest.raises(ConfigError, match="stop every server"):
            KeyLock(settings.data, served.platform.database, alone=True)
        if not served.platform.database.is_sqlite:  # from another folder as well
            (tmp_path / "elsewhere").mkdir()
            with pytest.raises(ConfigError, match="stop every server"):
                KeyLock(tmp_path / "elsewhere", served.platform.database, alone=True)
    database = Database(database_url)
    lock = KeyLock(settings.data, database, alone=True)
    with pytest.raises(ConfigError, match="being rotated"), serving(settings):
        pass
    lock.close()
    with serving(settings) as served:
        assert served.root.get("/whoami")
    database.close()


def test_an_operator_rotates_the_key_and_the_secrets_are_still_there(tmp_path: Path) -> None:
    with workplace(tmp_path / "w", "--runs-at-once", "0") as place:
        secret = place.root.post("/secrets", {"name": "SEARCH_KEY", "value": "tomatoes"})
        operator = Person(tmp_path / "operator", place.url)
        words = ("server", "rotate-key", "--data", str(place.data))
        refused = operator(*words)
        assert refused.code == 2
        assert "stop every server" in refused.stderr
        before = (place.data / "secret.key").read_bytes()
        place.stop()

        said = operator.ok(*words).stdout

        assert "A new key is in" in said
        assert (place.data / "secret.key").read_bytes() != before
        assert (place.data / "secret.key").stat().st_mode & 0o777 == 0o600
        place.start()
        (kept,) = place.root.get("/secrets")["items"]
        assert kept["id"] == secret["id"]
        database = Database(f"sqlite:///{place.data / 'proctor.db'}")
        assert b"tomatoes" in values(database, place.data / "secret.key")
        database.close()
