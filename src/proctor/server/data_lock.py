"""Lock a data folder: one server at a time, and anyone on the machine can see which.

A SQLite file belongs to one server as well: its folder is locked too. The lock ends with the process that
holds it, however it ends. The file beside it names that process. Knows nothing of what the folders hold.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack
from pathlib import Path

import msgspec

from proctor.errors import ConfigError
from proctor.server.settings import Settings

LOCK_FILE = "server.lock"


class RunningServer(msgspec.Struct, frozen=True):
    """The server that holds a data folder."""

    pid: int
    url: str
    """For people and clients elsewhere."""
    own_url: str
    """For this machine."""


class DataLock:
    """Held until it is closed; a folder that another server holds is refused."""

    def __init__(self, data: Path, url: str, own_url: str) -> None:
        self._file = os.open(data / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, 0)
            os.write(self._file, msgspec.json.encode(RunningServer(os.getpid(), url, own_url)))
        except BlockingIOError:
            self.close()
            raise ConfigError(describe_conflict(data)) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def lock_data(settings: Settings) -> ExitStack:
    """Lock a server's data folder, and the folder of its SQLite file if that is elsewhere."""
    with ExitStack() as held:
        for folder in dict.fromkeys((settings.data, *find_sqlite_folder(settings.database))):
            held.callback(DataLock(folder, settings.url, settings.own_url).close)
        return held.pop_all()


def find_sqlite_folder(database: str | None) -> list[Path]:
    file = database.partition("sqlite:///")[2].partition("?")[0] if database else ""
    return [Path(file).resolve().parent] if file and Path(file).resolve().parent.is_dir() else []


def is_locked(data: Path) -> bool:
    try:
        file = os.open(data / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def find_running_server(data: Path) -> RunningServer | None:
    """The server that holds the folder; None if there is none, or it has not written its name yet."""
    if not is_locked(data):
        return None
    try:
        return msgspec.json.decode((data / LOCK_FILE).read_bytes(), type=RunningServer)
    except (OSError, msgspec.MsgspecError):
        return None


def describe_conflict(data: Path) -> str:
    running = find_running_server(data)
    which = f"The server at {running.url} (process {running.pid})" if running else "Another server"
    return (
        f"{which} already uses {data}; stop it with `proctor server stop --data {data}`, "
        f"or name another folder with --data."
    )
