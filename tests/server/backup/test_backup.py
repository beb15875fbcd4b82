"""A backup that is taken while a run is played, and a server that is made from it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from sqlalchemy import Connection

from proctor.errors import ConfigError
from proctor.server.backup import databases
from proctor.server.backup.archive import creating_file, reading_archive
from proctor.server.backup.backup import back_up
from proctor.server.backup.restore import SPARE_BYTES, restore
from proctor.server.db.database import Database, sqlite_url
from proctor.server.db.tables import metadata
from proctor.server.storage.opening import STORAGE, save_setting
from tests.server.postgres import Cluster
from tests.server.runs import making
from tests.server.serving import Served
from tests.server.workplace import Workplace, workplace
from tests.waiting import wait_for

TASKS = 12
RUN = ("eval", "run", "ada/sums", "--hosted", "-m", "slow-parrot", "-n", "-1", "-r", "1", "-c", "2", "--json")


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxes")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_run_in_flight_is_finished_by_the_server_that_was_restored(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    first_words: tuple[str, ...] = ()
    second_words: tuple[str, ...] = ()
    if kind == "postgresql":
        cluster: Cluster = request.getfixturevalue("postgres")
        first_words, second_words = (("--database", cluster.fresh()) for _ in range(2))
    quick = ("--lease-seconds", "2", "--log-format", "json")
    archive = tmp_path / "backup.tar.gz"
    with workplace(tmp_path / "first", *first_words, *quick) as place:
        ada = place.person("ada")
        ada.write_environment()
        ada.ok("env", "push", "sums")
        run_id = ada.ok(*RUN, "-a", json.dumps({"tasks": TASKS})).json["runs"][0]["id"]
        wait_for(lambda: place.root.get(f"/runs/{run_id}")["progress"]["settled"] >= 2)
        database = Database(first_words[-1] if first_words else sqlite_url(place.data / "proctor.db"))
        with creating_file(archive) as out:
            back_up(place.data, database, out, with_key=True)
        database.close()
        settled = place.root.get(f"/runs/{run_id}")["progress"]["settled"]
        assert settled < TASKS, "the run was over before the backup was taken"
        token = place.token
        logged = place.log.read_text().splitlines()
    assert logged
    assert {frozenset(json.loads(line)) >= {"time", "level", "message"} for line in logged} == {True}

    copy = tmp_path / "second"
    copy.mkdir()
    (copy / "data-root-token").write_text(token)
    shutil.copytree(tmp_path / "first" / "ada", copy / "ada")
    told = ada.ok("server", "restore", str(archive), "--data", str(copy / "data"), *second_words)
    assert "Restored the backup of" in told.stdout
    restored = Workplace(copy, *second_words, *quick)
    restored.start()
    try:
        wait_for(lambda: restored.root.get(f"/runs/{run_id}")["status"] == "finished")
        progress = restored.root.get(f"/runs/{run_id}")["progress"]
        assert (progress["scored"], progress["failed"]) == (TASKS, 0)
        rows = restored.root("GET", f"/runs/{run_id}/results.jsonl").body.splitlines()
        assert sorted(json.loads(row)["example_id"] for row in rows) == list(range(TASKS))
    finally:
        restored.stop()


@pytest.fixture
def filled(served_on_both: Served) -> Served:
    """A server with people, a run with awkward rows, files, and a secret."""
    database = served_on_both.platform.database
    served_on_both.user("ada")
    database.write_now(making.environment)
    for number in range(3):
        database.write_now(making.run, name=f"tab\there, \\N, émoji 🦆 {number}")
    served_on_both.call(served_on_both.platform.blobs.add, b"a wheel" * 1000)
    served_on_both.root.post("/secrets", {"name": "KEY_OF_ADA", "value": "hush-hush-hush"})
    return served_on_both


def read_rows(database: Database) -> dict[str, list[tuple[object, ...]]]:
    def read(connection: Connection) -> dict[str, list[tuple[object, ...]]]:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(table.select())), key=repr)
            for table in metadata.sorted_tables
            if table.name not in ("commit_marks", "leases", "tokens")  # a server writes them by itself
        }

    return database.read_now(read)


def make_backup(server: Served, archive: Path, *, with_key: bool = False) -> None:
    platform = server.platform
    with creating_file(archive) as out:
        back_up(platform.data, platform.database, out, with_key=with_key)


def empty_target(server: Served, cluster: Cluster) -> Database | None:
    return None if server.platform.database.is_sqlite else Database(cluster.fresh())


def test_every_row_and_file_is_as_it_was(
    filled: Served, tmp_path: Path, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "PART_BYTES", 100)  # many parts of every table
    archive, copy = tmp_path / "backup.tar.gz", tmp_path / "copy"
    make_backup(filled, archive)
    before = read_rows(filled.platform.database)

    target = empty_target(filled, postgres)
    with archive.open("rb") as file:
        restore(file, archive.name, copy, target)
    known = target or Database(sqlite_url(copy / "proctor.db"))
    after = read_rows(known)

    assert len(before["runs"]) == 3
    assert after == before
    blob = next((filled.platform.data / "blobs").glob("??/*"))
    assert (copy / blob.relative_to(filled.platform.data)).read_bytes() == blob.read_bytes()
    assert not (copy / "secret.key").exists()
    assert archive.stat().st_mode & 0o077 == 0
    assert (copy / "proctor.db").exists() == (target is None)
    with (
        archive.open("rb") as file,
        pytest.raises(ConfigError, match="is not empty; restore into a new folder"),
    ):
        restore(file, archive.name, copy, target)
    if target is not None:
        with (
            archive.open("rb") as file,
            pytest.raises(ConfigError, match="database to restore into has tables"),
        ):
            restore(file, archive.name, tmp_path / "another", target)
    with pytest.raises(ConfigError, match="exists already"):
        make_backup(filled, archive)
    known.close()


def test_an_archive_that_is_cut_off_or_changed_restores_nothing(
    filled: Served, tmp_path: Path, postgres: Cluster
) -> None:
    archive = tmp_path / "backup.tar.gz"
    make_backup(filled, archive, with_key=True)
    whole = archive.read_bytes()
    plain = gzip.decompress(whole)
    changed = plain.replace(b"a wheel", b"A wheel", 1)
    unsealed = plain[: plain.rindex(b"seal.json")]
    assert changed != plain
    target = empty_target(filled, postgres)

    for name, content in {
        "cut in the middle": whole[: len(whole) // 2],
        "cut near the end": whole[: len(whole) * 9 // 10],
        "without its seal": gzip.compress(unsealed + bytes(1024 - len(unsealed) % 512)),
        "one byte changed": gzip.compress(changed),
        "not an archive": b"hello",
        "empty": b"",
    }.items():
        file = tmp_path / "broken.tar.gz"
        file.write_bytes(content)
        with (
            file.open("rb") as opened,
            pytest.raises(ConfigError, match=r"nothing was restored|a backup"),
        ):
            restore(opened, file.name, tmp_path / "copy", target)
        assert not list(tmp_path.glob("copy*")), name
    if target is not None:  # none of them left a table behind
        with archive.open("rb") as opened:
            restore(opened, archive.name, tmp_path / "copy", target)
        assert (tmp_path / "copy" / "secret.key").exists()
        target.close()


def test_members_cannot_leave_the_folder(served: Served, tmp_path: Path) -> None:
    archive, evil = tmp_path / "backup.tar.gz", tmp_path / "evil.tar.gz"
    make_backup(served, archive)
    for name, kind in (
        ("files/../../out", tarfile.REGTYPE),
        ("/tmp/out", tarfile.REGTYPE),
        ("files/x", tarfile.SYMTYPE),
    ):
        with tarfile.open(archive) as source, tarfile.open(evil, "w:gz") as target:
            head = source.next()
            assert head is not None
            target.addfile(head, source.extractfile(head))
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            target.addfile(member)
        with evil.open("rb") as opened, pytest.raises(ConfigError, match="a member that no backup has"):
            restore(opened, evil.name, tmp_path / "copy", None)


def test_an_archive_that_unpacks_to_more_than_the_disk_has_restores_nothing(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_backup(served, tmp_path / "backup.tar.gz")
    used = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: used._replace(free=SPARE_BYTES))

    with (tmp_path / "backup.tar.gz").open("rb") as file, pytest.raises(ConfigError, match="MB left"):
        restore(file, "it", tmp_path / "new", None)

    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "new.restoring").exists()


def test_a_header_of_a_backup_cannot_fill_the_memory(tmp_path: Path) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 30 * 2**20
    (tmp_path / "backup.tar.gz").write_bytes(gzip.compress(header.tobuf() + bytes(header.size)))

    with (tmp_path / "backup.tar.gz").open("rb") as file, pytest.raises(ConfigError, match="no backup has"):
        restore(file, "it", tmp_path / "new", None)


def test_a_backup_that_is_killed_leaves_nothing_under_its_name(served: Served, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar.gz"
    script = (
        "import sys, time; from pathlib import Path\n"
        "from proctor.server.backup.archive import creating_file\n"
        f"with creating_file(Path({str(target)!r})) as out:\n"
        "    out.write(b'half'); out.flush(); print('writing', flush=True); time.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "writing\n"
    with pytest.raises(ConfigError, match="Another backup is being written"):
        make_backup(served, target)
    os.kill(child.pid, signal.SIGKILL)
    child.wait(10)
    child.stdout.close()

    assert not target.exists()
    make_backup(served, target)
    assert [each.name for each in tmp_path.glob("backup*")] == ["backup.tar.gz"]


def test_files_in_an_object_store_stay_there_and_are_listed(served: Served, tmp_path: Path) -> None:
    archive, copy = tmp_path / "backup.tar.gz", tmp_path / "copy"
    blob = served.call(served.platform.blobs.add, b"a wheel")
    served.platform.database.write_now(save_setting, STORAGE, "s3://bucket/proctor")
    make_backup(served, archive)
    with archive.open("rb") as file:
        done = restore(file, archive.name, copy, None)
    assert done.head.storage == "s3://bucket/proctor"
    listed = json.loads((copy / "objects.jsonl").read_text())
    assert blob.sha256 in listed["key"]
    assert listed["size"] == len(b"a wheel")


def test_a_backup_of_one_kind_of_database_is_not_restored_into_another(
    served: Served, tmp_path: Path, postgres: Cluster
) -> None:
    archive = tmp_path / "backup.tar.gz"
    make_backup(served, archive)
    target = Database(postgres.fresh())
    with archive.open("rb") as file, pytest.raises(ConfigError, match="leave out --database"):
        restore(file, archive.name, tmp_path / "copy", target)
    target.close()
    with archive.open("rb") as file, reading_archive(file, archive.name) as reader:
        assert reader.read_head().database == "sqlite"
