"""Fetch commits of sources, a few at a time, and record what was found.

A fetch that a killed server leaves behind has written nothing: its folder is emptied at the next start, and
the caller asks again. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from msgspec.structs import replace
from sqlalchemy import Connection, Row

from proctor.api.sources import SourceContent
from proctor.errors import ProctorError
from proctor.runner.repository.fetch import (
    FETCH_LIMITS,
    FetchLimitError,
    FetchResult,
    RepositoryRules,
    fetch_commit,
)
from proctor.runner.repository.git import RepositoryError
from proctor.runner.repository.request import FetchedCommit, FetchRequest
from proctor.server.db.database import Database
from proctor.server.db.leases import ServerLease, ask_holder, hold, is_held, release, renewing
from proctor.server.private_files import empty_sandbox_folder
from proctor.server.problems import ApiError, InvalidError
from proctor.server.secrets.vault import Vault
from proctor.server.settings import Settings
from proctor.server.sources import commits, records, syncs
from proctor.server.sources.credentials import open_credentials
from proctor.server.sources.syncs import SyncEnding
from proctor.support.cancellation import cancel_task
from proctor.support.logs import log

AT_ONCE = 4
WEBHOOK = "webhook"
"""The cause of a sync that no user asked for."""
UNAVAILABLE = 502
SYNC_LEASE_SECONDS = 30.0


class SourceFetcher:
    """Fetches for all users of a server; each owner's sources one after the other."""

    def __init__(
        self, database: Database, vault: Vault, settings: Settings, server: str, holder: str
    ) -> None:
        self._database = database
        self._server = server
        self._holder = holder
        database.write_now(syncs.end_interrupted, server)
        self._vault = vault
        self._settings = settings
        self._free = asyncio.Semaphore(AT_ONCE)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._syncing: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._work = settings.data / "fetches"
        empty_sandbox_folder(self._work)

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

    async def sync(
        self, source: Row[Any], branch: str = "", *, cause: str, lease: ServerLease | None = None
    ) -> None:
        """Fetch the newest commit of a branch, and record what it holds and how that went. With a lease, only
        if no other server has taken it over meanwhile."""
        sync_id = await self._database.write(syncs.start_sync, source.id, cause, branch, self._server)
        ending = SyncEnding("interrupted", [syncs.STOPPED])
        try:
            result = await self.fetch(source, FetchRequest(url=source.url, branch=branch, with_history=True))
            if await self._database.write(save_fetched, source.id, result.commit, lease):
                ending = SyncEnding("succeeded", result.log, result.commit.commit)
        except ApiError as error:
            steps = error.__cause__.log if isinstance(error.__cause__, RepositoryError) else ()
            ending = SyncEnding("failed", steps or [str(error)])
            raise
        finally:
            await asyncio.shield(self._database.write(syncs.end_sync, sync_id, source.id, ending))

    async def read_commit(self, source: Row[Any], commit: str) -> SourceContent:
        """What a commit holds, fetched if it is not known yet."""
        known = await self._database.read(commits.find_content, source.id, commit)
        if known is not None:
            return known
        result = await self.fetch(source, FetchRequest(url=source.url, commit=commit))
        await self._database.write(commits.save_content, source.id, result.commit)
        found = await self._database.read(commits.find_content, source.id, commit)
        assert found is not None
        return found

    def sync_soon(self, source: Row[Any]) -> None:
        """Sync in the background; however many webhooks come meanwhile, to this server or to others, once
        more afterwards."""
        if source.id in self._syncing:
            self._again.add(source.id)
            return
        task = asyncio.create_task(self._sync_until_quiet(source))
        self._syncing[source.id] = task
        task.add_done_callback(lambda _: self._syncing.pop(source.id, None))

    async def _sync_until_quiet(self, source: Row[Any]) -> None:
        name = f"sync:{source.id}"
        is_wanted = True
        while is_wanted:
            self._again.discard(source.id)
            lease = await self._database.write(hold, name, self._holder, SYNC_LEASE_SECONDS)
            if lease is None:
                if await self._database.write(ask_holder, name):
                    return
                continue
            async with renewing(self._database, lease, SYNC_LEASE_SECONDS):
                try:
                    await self.sync(source, cause=WEBHOOK, lease=lease)
                except ProctorError as error:
                    log.warning("%s/%s could not be synced: %s", source.owner, source.name, error)
            is_wanted = await self._database.write(release, lease) or source.id in self._again

    async def close(self) -> None:
        for task in list(self._syncing.values()):
            await cancel_task(task)


def save_fetched(
    connection: Connection, source_id: str, commit: FetchedCommit, lease: ServerLease | None
) -> bool:
    """Record a commit, unless another server has taken over its sync."""
    if lease is not None and not is_held(connection, lease):
        return False
    records.save_commit(connection, source_id, commit)
    commits.save_content(connection, source_id, commit)
    return True
