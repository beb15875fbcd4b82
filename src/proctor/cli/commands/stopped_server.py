"""What the commands for a server's operator share: its packages, and its database while it is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.server.db.database import Database


@contextmanager
def server_packages() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"The server needs packages that are not installed ({error.name}); "
            f"install them with: pip install 'proctor[server]'"
        ) from error


@contextmanager
def opened_database(data: Path, url: str | None) -> Iterator[Database]:
    """The database of a server that was started before."""
    with server_packages():
        from proctor.server.db.database import Database, sqlite_url
        from proctor.server.db.migrate import migrate

    file = data / "proctor.db"
    if not data.is_dir() or (url is None and not file.exists()):
        raise ConfigError(f"No server in {data}; name its folder with --data.")
    known = Database(url or sqlite_url(file))
    try:
        migrate(known)
        yield known
    finally:
        known.close()


def shorten_path(file: Path) -> Path:
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file
