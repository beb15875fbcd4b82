"""A dataset on a server as a file here, for code that is loading an environment.

The server is the one you are logged in to; inside a hosted run it is the run's own, with the run's token. A
content that was downloaded before needs no server. Knows nothing of terminals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from proctor.client import datasets
from proctor.client.connection import ServerConnection
from proctor.client.contexts import Context, current_context, need_context
from proctor.datasets.cache import DatasetCache
from proctor.datasets.references import DatasetReference, find_reference
from proctor.errors import ConfigError
from proctor.support.loop import run_in_loop

TRIES = 8
"""Patience for a server that restarts: about 20 seconds."""
T = TypeVar("T")


class LocatedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset, wherever it is."""

    path: Path
    reference: DatasetReference | None = None
    """With its whole hash; None for a file of the user's own."""

    @property
    def name(self) -> str:
        return self.path.stem if self.reference is None else self.reference.slug


def locate(word: str, environ: Mapping[str, str], cache: DatasetCache | None = None) -> LocatedDataset:
    """The file that a path means, or that `owner/name@hash` means on a server."""
    reference = find_reference(word)
    if reference is None or Path(word).exists():
        return LocatedDataset(path=Path(word))
    cache = cache or DatasetCache()
    if not reference.is_pinned:
        raise ConfigError(describe_unpinned(reference, environ))
    cached = cache.find_prefix(reference.version)
    if cached is not None:
        return LocatedDataset(path=cached, reference=reference.pin(cached.stem))
    version, path = call_server(
        need_context(environ), lambda server: datasets.fetch(server, reference, cache)
    )
    return LocatedDataset(path=path, reference=reference.pin(version.sha256))


def describe_unpinned(reference: DatasetReference, environ: Mapping[str, str]) -> str:
    """Why the latest version is not taken, and what to write instead."""
    refusal = f"{reference} does not say which version, and runs must be repeatable"
    context = current_context(environ)
    if context is None:
        return f"There is no file {str(reference)!r}. If it is a dataset on a server, log in and add @hash."
    latest = call_server(context, lambda server: datasets.find_version(server, reference))
    if latest is None:
        return f"There is no file {str(reference)!r}, and no dataset of that name on {context.url} for you."
    return f"{refusal}; write {reference.pin(latest.sha256).short!r} for the latest."


def pin_latest(reference: DatasetReference, context: Context) -> DatasetReference:
    """The reference with the whole hash of what it means now."""
    version = call_server(context, lambda server: datasets.read_version(server, reference))
    return reference.pin(version.sha256)


def find_own(name: str, context: Context) -> DatasetReference | None:
    """A dataset of this user or their teams, by its bare name."""
    return call_server(context, lambda server: datasets.find_own(server, name))


def call_server(context: Context, work: Callable[[ServerConnection], Awaitable[T]]) -> T:
    """Run `work` to its end in a thread of its own: an event loop may be running in this one."""

    async def main() -> T:
        async with ServerConnection(context, tries=TRIES) as server:
            return await work(server)

    with ThreadPoolExecutor(1, thread_name_prefix="proctor-dataset") as pool:
        return pool.submit(lambda: run_in_loop(main())).result()
