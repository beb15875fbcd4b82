"""`proctor server backup` and `proctor server restore`."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

import click

from proctor.cli.commands.server_options import data_option, database_option, folder
from proctor.cli.commands.stopped_server import server_packages, shorten_path
from proctor.cli.views.escape import echo
from proctor.errors import ConfigError, describe_os_error


@click.command("backup")
@click.argument("file", required=False)
@data_option
@database_option
@click.option("--files", type=folder, help="Folder of pushed files, if the server was started with --files.")
@click.option(
    "--with-key",
    is_flag=True,
    help="Include the key that seals secrets: anyone with the archive can then read them.",
)
def backup_command(
    file: str | None, data: Path, database: str | None, files: Path | None, with_key: bool
) -> None:
    """Write everything a server keeps to one archive, while it runs or while it is stopped.

    FILE appears only once it is whole; `-` writes to standard output.

    \b
    proctor server backup --data /srv/proctor /backups/monday.tar.gz
    proctor server backup --data /srv/proctor - | ssh vault 'cat > monday.tar.gz'
    """
    with server_packages():
        from proctor.server.backup.archive import creating_file
        from proctor.server.backup.backup import back_up
        from proctor.server.db.database import Database, sqlite_url

    data = data.resolve()
    if not data.is_dir() or (database is None and not (data / "proctor.db").exists()):
        raise ConfigError(f"No server in {data}; name its folder with --data.")
    target = Path(file or time.strftime("proctor-backup-%Y%m%d-%H%M%S.tar.gz"))
    known = Database(database or sqlite_url(data / "proctor.db"))
    try:
        with nullcontext(sys.stdout.buffer) if file == "-" else creating_file(target) as out:
            done = back_up(data, known, out, with_key=with_key, files=files)
            out.flush()
    finally:
        known.close()
    where = "standard output" if file == "-" else target
    key = "with the key" if with_key else "without the key; back that up separately"
    echo(f"Backed up the database and its files ({done.files:,}) to {where}, {key}.", err=True)


@click.command("restore")
@click.argument("file")
@data_option
@database_option
def restore_command(file: str, data: Path, database: str | None) -> None:
    """Make a server from a backup, in a folder and a database that are empty.

    Everything is checked before anything is put in place; `-` reads from standard input.

    \b
    proctor server restore monday.tar.gz --data /srv/proctor
    proctor server restore monday.tar.gz --data /srv/proctor --database postgresql://localhost/proctor
    """
    with server_packages():
        from proctor.server.backup.restore import restore
        from proctor.server.db.database import Database

    data = data.resolve()
    target = None if database is None else Database(database)
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else open_archive(Path(file)) as archive:
            done = restore(archive, file, data, target)
    finally:
        if target is not None:
            target.close()
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(done.head.created_at))
    echo(f"Restored the backup of {made} and its files ({done.files:,}) to {data}.")
    if not done.head.has_key:
        echo(f"It holds no key: put the server's secret.key into {shorten_path(data)} before you start it.")
    if done.head.storage != "folder":
        echo(f"Its files are in {done.head.storage}; objects.jsonl lists those that it needs.")


def open_archive(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise ConfigError(f"Cannot read {file}: {describe_os_error(error)}.") from error
