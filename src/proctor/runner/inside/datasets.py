"""The dataset file of a recipe, fetched by the run's own process into its own folder.

Knows nothing of what is in it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from proctor.api.runs import DataFile
from proctor.client.connection import ServerConnection
from proctor.datasets.files import hash_file
from proctor.errors import InfraError

FOLDER = "data"
CHUNK_BYTES = 2**16
SECONDS = 300.0
"""How long the server may be silent."""


async def fetch_dataset(server: ServerConnection, wanted: DataFile, folder: Path) -> Path:
    """The file, from an earlier attempt or from the server."""
    file = folder / FOLDER / f"{wanted.name}.{wanted.format}"
    if file.is_file() and hash_file(file) == wanted.sha256:
        return file
    file.parent.mkdir(exist_ok=True)
    digest, part = hashlib.sha256(), file.with_suffix(".part")
    async with server.open("GET", "/runner/dataset", seconds=SECONDS) as answer:
        with part.open("wb") as opened:
            async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                digest.update(chunk)
                opened.write(chunk)
    if digest.hexdigest() != wanted.sha256:
        raise InfraError(f"The dataset {wanted.name} arrived damaged; resume the run.")
    part.rename(file)
    return file
