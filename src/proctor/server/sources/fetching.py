"""Fetch commits of sources, a few at a time, and record what was found.

A fetch that a killed server leaves behind has written nothing: its folder is emptied at the next start, and
whoever asked asks again. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from msgspec.structs import replace
from sqlalchemy import Row

from proctor.errors import ProctorError
from proctor.isolation.untrusted_tree import discard_tree
from proctor.runner.repository.fetch import (
    FETCH_LIMITS,
    FetchLimitError,
    FetchResult,
    RepositoryRules,
    fetch_commit,
)
from proctor.runner.repository.git import RepositoryError
from proctor.runner.repository.request import FetchRequest
from proctor.server.db.database import Database
from proctor.server.private_files import make_private_folder
from proctor.server.problems import ApiError, InvalidError
from proctor.server.secrets.vault import Vault
from proctor.server.settings import Settings
from proctor.server.sources import records
from proctor.server.sources.credentials import open_credentials
from proctor.support.logs import log

AT_ONCE = 4
UNAVAILABLE = 502


class SourceFetcher:
    """Fetches for all users of a server; each owner's sources one after the other."""

    def __init__(self, database: Database, vault: Vault, settings: Settings) -> None:
        self._database = database
        self._vault = vault
        self._settings = settings
        self._free = asyncio.Semaphore(AT_ONCE)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._syncing: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._work = settings.data / "fetches"
        discard_tree(self._work)  # of a server that was killed
        make_private_folder(self._work)
        if self._work.stat().st_uid == 0:
            self._work.chmod(0o711)  # a sandbox enters the folders below as another user

    @property
    def rules(self) -> RepositoryRules:
        settings = self._settings
        return RepositoryRules(
            seconds=settings.fetch_seconds,
            limits=replace(FETCH_LIMITS, disk_mb=settings.fetch_disk_mb),
            allowed_hosts=settings.source_hosts,
            hidden=(settings.data,),
            allow_no_sandbox=settings.allow_no_sandbox,
            work=self._work,
        )

    async def fetch(self, source: Row[Any], wanted: FetchRequest) -> FetchResult:
        """Fetch a commit of a source; refusals of the repository become refusals of the request."""
        credentials = open_credentials(self._vault, source.id, source.sealed)
        request = replace(
            wanted,
            url=source.url,
            header=credentials.header,
            key=credentials.key,
            known_hosts=source.known_hosts,
        )
        turn = self._turns.setdefault(source.owner, asyncio.Lock())
        async with turn, self._free:
            try:
                result = await fetch_commit(request, self.rules)
            except RepositoryError as error:
                is_about_request = error.problem.code.startswith("unknown")
                if not is_about_request:
                    await self._database.write(records.save_problem, source.id, str(error))
                raise InvalidError(str(error), code=error.problem.code) from error
            except FetchLimitError as error:
                await self._database.write(records.save_problem, source.id, str(error))
                raise ApiError(str(error), code="source_unreachable", status=UNAVAILABLE) from error
        if result.commit.known_hosts and not source.known_hosts:
            await self._database.write(records.save_known_hosts, source.id, result.commit.known_hosts)
        return result

    async def sync(self, source: Row[Any], branch: str = "") -> None:
        """Fetch the newest commit of a branch, and list its rollouts."""
        result = await self.fetch(source, FetchRequest(url=source.url, branch=branch))
        await self._database.write(records.save_commit, source.id, result.commit)

    def sync_soon(self, source: Row[Any]) -> None:
        """Sync in the background; however many webhooks come meanwhile, once more afterwards."""
        if source.id in self._syncing:
            self._again.add(source.id)
            return
        task = asyncio.create_task(self._sync_until_quiet(source))
        self._syncing[source.id] = task
        task.add_done_callback(lambda _: self._syncing.pop(source.id, None))

    async def _sync_until_quiet(self, source: Row[Any]) -> None:
        while True:
            self._again.discard(source.id)
            try:
                await self.sync(source)
            except ProctorError as error:
                log.warning("%s/%s could not be synced: %s", source.owner, source.name, error)
            if source.id not in self._again:
                return

    async def close(self) -> None:
        for task in list(self._syncing.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
