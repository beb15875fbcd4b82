"""`proctor server storage`: move the files of a server between its folder and an object store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from proctor.cli.commands.server_options import data_option, database_option
from proctor.cli.commands.stopped_server import opened_database, server_packages
from proctor.cli.views.escape import echo
from proctor.errors import ConfigError
from proctor.server.settings import Settings

REPORT_EVERY = 100


@click.group("storage")
def storage_command() -> None:
    """Where a server keeps pushed wheels, sources, datasets and the results of runs that have ended."""


@storage_command.command("move")
@click.option("--to", "address", required=True, metavar="ADDRESS", help="`folder`, or s3://BUCKET/PREFIX.")
@data_option
@database_option
def move_command(address: str, data: Path, database: str | None) -> None:
    """Copy every file of a server that is stopped to another store, which it then uses.

    Stopped halfway, it continues where it was when you run it again; until all is copied, the server uses the
    old store. The old copies stay, for you to delete.

    \b
    proctor server storage move --to s3://results/proctor --data /srv/proctor
    proctor server storage move --to folder --data /srv/proctor
    """
    with server_packages():
        from proctor.server.problems import ApiError
        from proctor.server.secrets.key_lock import KeyLock
        from proctor.server.storage import opening
        from proctor.server.storage.move import move_files

    data = data.resolve()
    address = opening.normalize_address(address)

    def report(done: int, total: int) -> None:
        if done % REPORT_EVERY == 0 or done == total:
            echo(f"{done:,} of {total:,} files")

    with opened_database(data, database) as known:
        lock = KeyLock(data, known, alone=True)
        try:
            settings = Settings(data=data)
            source = opening.connect_store(known.read_now(opening.find_recorded)[0], settings, known)
            target = opening.connect_store(address, settings, known)
            moved = asyncio.run(move_files(known, source, target, data / "incoming", report))
        except ApiError as error:
            raise ConfigError(f"{error} Run the same command again to continue.") from error
        finally:
            lock.close()
    echo(
        f"{moved.copied:,} files copied, {moved.there_before:,} were there; the server now uses "
        f"{opening.describe_address(address)}: start it with --storage {address}."
    )
    if moved.missing:
        echo(
            f"Warning: {len(moved.missing):,} files are missing from the old store, the first of them "
            f"{moved.missing[0]}; restore them from a backup.",
            err=True,
        )
