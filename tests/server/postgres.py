"""A real PostgreSQL for tests: a cluster of its own in a temporary folder, reached by a socket only."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

PLACES = ("/usr/lib/postgresql", "/usr/local/pgsql")
SECONDS = 180


class Cluster:
    """One server that makes databases."""

    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._programs = programs
        self._user = user

    def url(self, name: str) -> str:
        return f"postgresql://proctor@/{name}?host={self.folder}"

    def fresh(self, template: str = "template1") -> str:
        """The address of a new database: empty, or as its template is."""
        return self.url(self.create_database(f"t{secrets.token_hex(6)}", template))

    def create_database(self, name: str, template: str = "template1") -> str:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def create(self) -> None:
        self._run("initdb", "-D", str(self.data), "-U", "proctor", "-A", "trust", "--no-sync", "-E", "UTF8")

    def start(self) -> None:
        options = (
            f"-k {self.folder} -c listen_addresses='' -c fsync=off -c full_page_writes=off "
            "-c max_connections=200"
        )
        self._run(
            "pg_ctl", "-D", str(self.data), "-w", "-l", str(self.folder / "log"), "-o", options, "start"
        )

    def stop(self) -> None:
        """As a crash would."""
        self._run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """None of its processes does anything, and none of its connections breaks."""
        first = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        pids = [first, *map(int, children)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(
            [str(self._programs / program), *words],
            check=True,
            user=self._user,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            timeout=SECONDS,
        )


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
    made = Cluster(folder, bin_folder, user)
    try:
        made.create()
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
