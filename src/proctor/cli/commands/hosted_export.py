"""Runs by name, here or on a server; one on a server is downloaded into a folder laid out like a local run's.

The download is complete or fails. Knows nothing of formats.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from proctor.cli.commands.server_calls import call_for_run, call_server
from proctor.client import runs
from proctor.client.connection import ServerConnection
from proctor.client.contexts import need_context
from proctor.errors import ConfigError, StoreError
from proctor.store.folder import METADATA, RESULTS
from proctor.store.index import StoredRun, find_run, read_run, search_folders
from proctor.store.locate import to_path_part
from proctor.store.traces import StoredTrace, find_row, find_trace, split_trace_id


@contextmanager
def download_run(run_id: str, keep: Path | None = None, tasks: Sequence[str] | None = None) -> Iterator[Path]:
    """The folder of a run, removed afterwards unless `keep` names where to store it; `tasks` are those whose
    rollouts it has, if not all."""
    if keep is not None and keep.exists():
        raise ConfigError(f"{keep} already exists; name a new folder.")
    with tempfile.TemporaryDirectory(prefix="proctor-export-") as scratch:
        run_folder = Path(scratch) / to_path_part(run_id)
        run_folder.mkdir()

        async def download(server: ServerConnection, run_id: str) -> None:
            (run_folder / METADATA).write_bytes(await runs.download_metadata(server, run_id))
            with (run_folder / RESULTS).open("wb") as out:
                if tasks is None:
                    await runs.download_rows(server, run_id, out)
                for task in tasks or ():
                    async for raw in runs.iterate_rows(server, run_id, task=task):
                        out.write(bytes(raw) + b"\n")

        call_for_run(run_id, download)
        if keep is not None:
            try:
                keep.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(run_folder, keep)
            except OSError as error:
                raise StoreError(f"Cannot write {keep}: {error.strerror}.") from error
        yield keep or run_folder


@contextmanager
def open_run(word: str, dirs: Sequence[str] = ()) -> Iterator[StoredRun]:
    """The run that a word names: here or, by its whole id, on the server."""
    if not runs.is_run_id(word):
        yield read_run(find_run(word, search_folders(dirs)))
        return
    with download_run(word) as folder:
        yield describe_hosted_run(folder, word)


@contextmanager
def open_trace(word: str, dirs: Sequence[str] = ()) -> Iterator[tuple[StoredTrace, StoredRun]]:
    """The rollout that RUN/TASK/NUMBER names, and its run: here or on the server."""
    run_id, rest = split_trace_id(word)
    if not runs.is_run_id(run_id):
        found = find_trace(word, search_folders(dirs))
        yield found, read_run(found.folder)
        return
    # A task's name may have slashes, and the number may be left out.
    tasks = list(dict.fromkeys((rest, rest.rpartition("/")[0] or rest))) if rest else None
    with download_run(run_id, tasks=tasks) as folder:
        if tasks is not None and not (folder / RESULTS).stat().st_size:
            raise ConfigError(f"Run {run_id} has no rollout {rest!r}; `proctor jobs {run_id}` lists them.")
        yield find_row(folder, rest), describe_hosted_run(folder, run_id)


def describe_hosted_run(folder: Path, run_id: str) -> StoredRun:
    """A downloaded run, with what the server knows about it."""
    known = call_server(lambda server: runs.read_run(server, run_id))
    return replace(
        read_run(folder),
        id=run_id,
        env=f"{known.environment}@{known.version}" if known.version else known.environment,
        model=known.model,
        agent=known.agent or "",
        runtime=known.runtime,
        owner=known.owner,
        server=need_context(os.environ).url,
        status=known.status,
        started_at=known.started_at or known.created_at,
        settled=known.progress.settled,
        planned=known.progress.planned,
        note="" if known.cause is None else known.cause.message,
    )
