"""A dashboard with runs to compare, over any store that can show them.

Tests ask a site for the ids of runs by name and open its pages; they do not know which store is behind it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from proctor.pages.files import BuiltPages
from proctor.reading.folders.find import find_run_folders
from proctor.reading.folders.library import FolderLibrary
from proctor.viewer.app import build_app
from proctor.viewer.listen import bind_loopback, serve_app

START_SECONDS = 60


class Site(NamedTuple):
    """Pages that show some runs."""

    url: str
    runs: Mapping[str, str]
    """The ids of runs, by the names that tests give them."""
    suite: str
    environment: str
    """That all runs are of, as the address of its evaluations has it."""
    versions: int = 2
    """Of that environment that can be told apart; the server keeps no content hash of an uploaded run."""
    token: str = ""
    """To log in with; empty where there is no login."""
    ids: Mapping[str, str] = {}
    """The ids of runs by those of their folders, where they are others."""

    def id_of(self, folder_id: str) -> str:
        return self.ids.get(folder_id, folder_id)


@contextmanager
def viewing(*folders: Path) -> Iterator[str]:
    """`proctor view` of folders, in a thread with a loop of its own; yields its address."""
    ready = threading.Event()
    address: list[str] = []
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        library = FolderLibrary(lambda: find_run_folders(folders))
        stopped = asyncio.Event()
        stop.append((asyncio.get_running_loop(), stopped))
        try:
            async with serve_app(build_app(library, BuiltPages()), bind_loopback(0)) as url:
                address.append(url)
                ready.set()
                await stopped.wait()
        finally:
            library.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(START_SECONDS), "proctor view did not start"
    try:
        yield address[0]
    finally:
        loop, stopped = stop[0]
        loop.call_soon_threadsafe(stopped.set)
        thread.join(START_SECONDS)
