"""Find what is finished already: the server's rows, and those that an earlier attempt left on this machine.

Both are read line by line, so that the size of a run does not matter. Knows nothing of engines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import msgspec

from proctor.client.connection import ServerConnection, ServerError
from proctor.report.lines import RolloutLine
from proctor.rollout import RolloutKey
from proctor.store.folder import METADATA, RESULTS, read_line

CHUNK_BYTES = 2**18
TRIES = 120
PAUSE_SECONDS = 2.0


async def merge_server_rows(server: ServerConnection, folder: Path) -> set[RolloutKey]:
    """Add the server's rows to the folder where they are missing; returns the keys of the server's rows."""
    folder.mkdir(exist_ok=True)
    theirs = folder / "theirs.jsonl"
    await download_rows(server, theirs)
    file, merged = folder / RESULTS, folder / "merged.jsonl"
    settled: set[RolloutKey] = set()
    known: set[RolloutKey] = set()
    with merged.open("wb") as out:
        for raw, line in iterate_lines(file):
            out.write(raw)
            if line.is_settled:
                settled.add(line.key)
        for raw, line in iterate_lines(theirs):
            known.add(line.key)
            if line.key not in settled:
                out.write(raw)
    merged.replace(file)
    theirs.unlink()
    return known


async def fetch_baseline(server: ServerConnection, folder: Path, run_id: str) -> None:
    """The scores of the run that this one is compared with, as a folder named after it, where `until_decided`
    finds it."""
    run_folder = folder / run_id
    run_folder.mkdir(exist_ok=True)
    (run_folder / METADATA).write_bytes(msgspec.json.encode({"run_id": run_id}))
    await download_rows(server, run_folder / RESULTS, "/runner/baseline.jsonl")


async def download_rows(server: ServerConnection, target: Path, path: str = "/runner/results.jsonl") -> None:
    """All settled rows that the server has, over as many requests as that takes."""
    for left in reversed(range(TRIES)):
        try:
            with target.open("wb") as out:
                async with server.open("GET", path) as response:
                    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                        out.write(chunk)
            return
        except (ServerError, aiohttp.ClientError, TimeoutError) as error:
            if not left or (isinstance(error, ServerError) and not error.is_transient):
                raise
        await asyncio.sleep(PAUSE_SECONDS)


def iterate_lines(file: Path) -> Iterator[tuple[bytes, RolloutLine]]:
    """Every readable row as a whole line: a crash may have cut off the end of the last."""
    if not file.exists():
        return
    with file.open("rb") as rows:
        for raw in rows:
            line = read_line(raw)
            if line is not None:
                yield raw.rstrip(b"\n") + b"\n", line
