"""The handler of the route that exports a run's rollouts as a table.

The rows that match are laid out as a run folder, of which store/export.py makes the table; both are in a
temporary folder until the download has ended. Knows nothing of stores.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from proctor.api.refusals import ApiError, InvalidError
from proctor.api.rollout_list import ExportQuery
from proctor.errors import ConfigError, StoreError
from proctor.reading.exchange import Download, ReadRequest
from proctor.reading.foreign_rows import adapt_row
from proctor.reading.library import Batch, RunLibrary, RunReader
from proctor.reading.rollout_index import RolloutIndex
from proctor.reading.rollout_pages import find_slots
from proctor.store.export import decode_line, import_arrow, scan_table, write_file
from proctor.store.folder import METADATA, RESULTS, UNREADABLE

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
CHUNK_BYTES = 2**18


class NoRoomError(ApiError):
    """A table cannot be written."""

    status, code = 507, "no_room"


async def export_run(library: RunLibrary, request: ReadRequest) -> Download:
    query: ExportQuery = request.query
    reader = await library.open(request.path["run_id"])
    index = await reader.index(whole=True)
    folder = tempfile.TemporaryDirectory(prefix="proctor-export-")
    try:
        if query.format == "parquet":
            import_arrow()
        await lay_out(reader, index, query, Path(folder.name))
        table = await asyncio.to_thread(write_table, Path(folder.name), query)
    except (ConfigError, StoreError, OSError) as error:
        folder.cleanup()
        if isinstance(error, ConfigError):
            raise InvalidError(str(error), field="columns") from error
        raise NoRoomError(f"The table could not be written to {tempfile.gettempdir()}: {error}") from error
    except BaseException:
        folder.cleanup()
        raise
    name = f"{re.sub(r'[^A-Za-z0-9._-]', '_', reader.id)}.{query.format}"
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "content-length": str(table.stat().st_size),
    }
    return Download(MEDIA_TYPES[query.format], send_file(table, folder), headers)


async def lay_out(reader: RunReader, index: RolloutIndex, query: ExportQuery, folder: Path) -> None:
    """Write the rows that match, and the metadata, as a run folder has them."""
    slots = await asyncio.to_thread(lambda: list(find_slots(index, query).slots))
    (folder / METADATA).write_bytes(msgspec.json.encode(await reader.metadata()))
    with (folder / RESULTS).open("wb") as file:
        async for batch in reader.batches(index, slots):
            await asyncio.to_thread(write_rows, index, batch, file)


def write_rows(index: RolloutIndex, batch: Batch, file: BinaryIO) -> None:
    for slot, raw in batch:
        line = raw if raw.endswith(b"\n") else raw + b"\n"
        file.write(line if decode_line(line) is not None else adapt_line(index, slot, line))


def adapt_line(index: RolloutIndex, slot: int, raw: bytes) -> bytes:
    """A row of another tool in our shape; one that cannot be read stays out of the table."""
    try:
        fields = adapt_row(msgspec.json.decode(raw, type=dict[str, object]), 0)
    except UNREADABLE:
        return b""
    fields |= {"example_id": index.tasks[index.task[slot]], "rollout": index.number[slot]}
    return msgspec.json.encode(fields) + b"\n"


def write_table(folder: Path, query: ExportQuery) -> Path:
    path = folder / f"table.{query.format}"
    write_file(scan_table(folder, query.columns), query.format, path)
    (folder / RESULTS).unlink()
    return path


async def send_file(path: Path, folder: tempfile.TemporaryDirectory[str]) -> AsyncIterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                yield chunk
    finally:
        folder.cleanup()
