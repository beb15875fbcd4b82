"""Download a run from a server into a folder laid out like a local run's.

The download is complete or fails. Knows nothing of formats.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proctor.cli.commands.remote import call_for_run
from proctor.client import runs
from proctor.client.connection import ServerConnection
from proctor.errors import ConfigError, StoreError
from proctor.store.folder import METADATA, RESULTS


@contextmanager
def download_run(run_id: str, keep: Path | None) -> Iterator[Path]:
    """The folder of a run, removed afterwards unless `keep` names where to store it."""
    if keep is not None and keep.exists():
        raise ConfigError(f"{keep} already exists; name a new folder.")
    with tempfile.TemporaryDirectory(prefix="proctor-export-") as scratch:
        place = Path(scratch) / "run"
        place.mkdir()

        async def download(server: ServerConnection, run_id: str) -> None:
            (place / METADATA).write_bytes(await runs.download_metadata(server, run_id))
            with (place / RESULTS).open("wb") as out:
                await runs.download_rows(server, run_id, out)

        call_for_run(run_id, download)
        if keep is not None:
            try:
                keep.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(place, keep)
            except OSError as error:
                raise StoreError(f"Cannot write {keep}: {error.strerror}.") from error
        yield keep or place
