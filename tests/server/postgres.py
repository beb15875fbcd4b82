"""A real PostgreSQL for tests: a cluster of its own in a temporary folder, reached by a socket only."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

PLACES = ("/usr/lib/postgresql", "/usr/local/pgsql")
SECONDS = 60


class Cluster:
    """One server that makes databases."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def url(self, name: str) -> str:
        return f"postgresql://proctor@/{name}?host={self.folder}"

    def fresh(self) -> str:
        """The address of a new, empty database."""
        name = f"t{secrets.token_hex(6)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


def programs() -> Path | None:
    """Where PostgreSQL's own programs are."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).parent
    found = [path for place in PLACES for path in sorted(Path(place).glob("**/bin/initdb"), reverse=True)]
    return found[0].parent if found else None


@contextmanager
def cluster() -> Iterator[Cluster]:
    bin_folder = programs()
    if bin_folder is None:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="proctor-pg-"))
    user = None
    if os.getuid() == 0:  # it refuses to run as root
        user = "postgres" if has_user("postgres") else "nobody"
        shutil.chown(folder, user)
    data = folder / "data"

    def run(program: str, *words: str) -> None:
        subprocess.run(
            [str(bin_folder / program), *words],
            check=True,
            user=user,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            timeout=SECONDS,
        )

    options = (
        f"-k {folder} -c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=200"
    )
    try:
        run("initdb", "-D", str(data), "-U", "proctor", "-A", "trust", "--no-sync", "-E", "UTF8")
        run("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield Cluster(folder)
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
