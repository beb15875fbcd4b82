"""Wheels of pushed versions on a host: downloaded from the server by their hash, and kept for a while.

Knows nothing of what is in them.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
import time
from pathlib import Path

import aiohttp

from proctor.client.connection import ServerConnection, ServerError
from proctor.errors import InfraError, InstallError
from proctor.isolation.command_line import MEGABYTE

KEPT_MB = 2_048
KEPT_SECONDS = 3_600.0
"""At least this long: its requester may not have read it yet."""
CHUNK_BYTES = 65_536
TRIES, PAUSE_SECONDS = 100, 2.0
NO_CONNECTION = (aiohttp.ClientError, ConnectionError, TimeoutError)
SHA256 = re.compile(r"[0-9a-f]{64}")


async def fetch_wheel(server: ServerConnection, sha256: str, folder: Path) -> Path:
    """A file with exactly this content, from the folder or else from the server."""
    if SHA256.fullmatch(sha256) is None:
        raise InstallError(f"{sha256!r} is not the hash of a wheel; does the server run another version?")
    wheel = folder / f"{sha256}.whl"
    if wheel.exists():
        os.utime(wheel)
        return wheel
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in reversed(range(TRIES)):
        try:
            await download(server, sha256, wheel)
            break
        except ServerError as error:
            if not left or not error.is_transient:
                raise
        except NO_CONNECTION as error:
            if not left:
                raise InfraError(f"Could not download the wheel {sha256[:12]}…: {error}.") from error
        await asyncio.sleep(PAUSE_SECONDS)
    await asyncio.to_thread(prune, folder, KEPT_MB * MEGABYTE)
    return wheel


async def download(server: ServerConnection, sha256: str, wheel: Path) -> None:
    descriptor, part = tempfile.mkstemp(prefix="part-", dir=wheel.parent)
    try:
        digest = hashlib.sha256()
        with os.fdopen(descriptor, "wb") as file:
            async with server.open_file(f"/hosts/wheels/{sha256}") as response:
                async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
        if digest.hexdigest() != sha256:
            raise InstallError(f"The wheel {sha256[:12]}… arrived damaged; it will be fetched again.")
        Path(part).rename(wheel)
    finally:
        Path(part).unlink(missing_ok=True)


def prune(folder: Path, room: int) -> None:
    """Remove those that were not requested for the longest, until the rest fits. Blocks."""
    known = [(file.stat(), file) for file in folder.glob("*.whl")]
    for status, file in sorted(known, key=lambda entry: -entry[0].st_mtime):
        room -= status.st_size
        if room < 0 and time.time() - status.st_mtime > KEPT_SECONDS:
            file.unlink(missing_ok=True)
