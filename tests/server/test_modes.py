"""Everything a server or a login keeps is its owner's alone, by itself and whatever the umask."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proctor.client.contexts import Context, Contexts, write_contexts
from proctor.server.private_files import tighten_data
from proctor.server.storage.folder import FolderStore
from proctor.store.locate import keep_private
from tests.server.serving import kept_file, serving, settings_in


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """What others could read if the folder were moved to where they can look; folders that sandboxes enter
    aside."""
    entered = {"host", "fetches", "scans"}
    everything = (folder, *folder.rglob("*"))
    found = [path for path in everything if entered.isdisjoint(path.relative_to(folder).parts)]
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in found if not path.is_symlink()}
    return [f"{name} {mode:o}" for name, mode in modes.items() if mode & 0o077]


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_nothing_that_a_server_keeps_is_open_to_others(tmp_path: Path, mask: int) -> None:
    settings = settings_in(tmp_path)
    with umask(mask), serving(settings) as server:
        server.user("ada")
        server.call(server.platform.blobs.add, b"a wheel")
        kept = {path.name for path in settings.data.iterdir()}
        assert {"proctor.db", "proctor.db-wal", "proctor.db-shm", "secret.key"} <= kept
        assert open_to_others(settings.data) == []


def test_what_an_earlier_version_left_open_is_tightened_at_the_start(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with serving(settings) as server:
        sha256 = server.call(server.platform.blobs.add, b"a wheel").sha256
    for path in settings.data.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    settings.data.chmod(0o755)

    with serving(settings) as server:
        assert open_to_others(settings.data) == []
        assert kept_file(server, sha256).read_bytes() == b"a wheel"
        assert server.root.get("/whoami")["user"]["name"] == "root"


def test_a_database_elsewhere_is_as_private(tmp_path: Path) -> None:
    elsewhere = tmp_path / "disk"
    elsewhere.mkdir()
    elsewhere.chmod(0o700)
    settings = settings_in(tmp_path, database=f"sqlite:///{elsewhere / 'other.db'}")
    with umask(0), serving(settings):
        assert len(list(elsewhere.iterdir())) >= 2
        assert open_to_others(elsewhere) == []


def test_tightening_follows_no_link_and_waits_for_nobody(tmp_path: Path) -> None:
    data, victim = tmp_path / "data", tmp_path / "victim"
    (data / "blobs" / "aa").mkdir(parents=True)
    victim.write_text("not ours")
    victim.chmod(0o644)
    for place in (data / "link", data / "blobs" / "aa" / "link"):
        place.symlink_to(victim)
    (data / "blobs" / "bb").symlink_to(tmp_path)
    os.mkfifo(data / "fifo")
    os.mkfifo(data / "blobs" / "aa" / "fifo")

    tighten_data(data)

    assert stat.S_IMODE(victim.stat().st_mode) == 0o644
    assert stat.S_IMODE((data / "blobs" / "aa").stat().st_mode) == 0o700


def test_a_blob_is_private_from_its_first_moment_on(tmp_path: Path) -> None:
    with umask(0):
        (tmp_path / "new").write_bytes(b"content")
        asyncio.run(FolderStore(tmp_path / "blobs").put("aa/file", tmp_path / "new"))
    assert open_to_others(tmp_path / "blobs") == []


def test_tokens_of_a_login_are_private(tmp_path: Path) -> None:
    environ = {"PROCTOR_CONFIG_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    contexts = Contexts(current="a", contexts={"a": Context(url="http://127.0.0.1", token="t")})
    with umask(0):
        file = write_contexts(environ, contexts)
        file.chmod(0o644)
        write_contexts(environ, contexts)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_journals_of_runs_are_private_also_where_they_were_not(tmp_path: Path) -> None:
    base = tmp_path / "state" / "runs"
    with umask(0):
        keep_private(base)
        assert stat.S_IMODE(base.stat().st_mode) == 0o700
        base.chmod(0o755)
        keep_private(base)
    assert stat.S_IMODE(base.stat().st_mode) == 0o700
