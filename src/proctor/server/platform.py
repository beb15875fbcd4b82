"""The parts of a server, assembled once and passed to routes.

Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile

from proctor.errors import ConfigError, describe_os_error
from proctor.server import quotas
from proctor.server.data_lock import lock_data
from proctor.server.datasets.inspection import DatasetInspector
from proctor.server.datasets.upload_parts import PartFiles, PartObjects, UploadParts
from proctor.server.db.database import Database, sqlite_url
from proctor.server.db.migrate import migrate
from proctor.server.gateway.meter import UsageMeter
from proctor.server.gateway.models import Models, has_local
from proctor.server.gateway.reserver import Reserver
from proctor.server.gateway.upstreams import Upstreams
from proctor.server.housekeeping import Housekeeping
from proctor.server.hub.main_index import MainIndex
from proctor.server.hub.run_policy import save_default
from proctor.server.identity import server_id
from proctor.server.ledger.price_overrides import load_prices
from proctor.server.notifier import Notifier
from proctor.server.own_host import OwnHost
from proctor.server.people.callers import CallerCache
from proctor.server.people.login_throttle import LoginThrottle
from proctor.server.people.watch import AccessWatch
from proctor.server.private_files import make_private_folder, tighten_data
from proctor.server.reading.library import RunReading
from proctor.server.registry import ServerRegistry, check_clock
from proctor.server.runs.queue import extend_leases
from proctor.server.runs.service import RunService
from proctor.server.sandboxes.hub_library import HubLibrary, venv_source
from proctor.server.sandboxes.lifecycle import SandboxManager
from proctor.server.sandboxes.sessions import Sessions
from proctor.server.secrets.key_check import ensure_key, is_sealed
from proctor.server.secrets.key_lock import KeyLock
from proctor.server.secrets.rotation import finish_rotation
from proctor.server.secrets.vault import Vault, key_file, open_vault
from proctor.server.settings import MEGABYTE, Settings
from proctor.server.sources.fetching import SourceFetcher
from proctor.server.storage.blobs import Blobs
from proctor.server.storage.local_copies import LocalCopies
from proctor.server.storage.opening import open_store

MILLION = 1_000_000
THREADS = 2 * quotas.READS_IN_ALL
"""For code that blocks, on any machine: reads that compute leave the others free."""


class Platform:
    """One server's database, files and settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.is_draining = False
        """Whether the server is about to end."""
        make_folder(settings.data)
        make_folder(settings.files_folder)
        self.data_lock = lock_data(settings)
        with ExitStack() as undo:
            undo.callback(self.data_lock.close)
            self._open(settings, undo)
            undo.pop_all()

    def _open(self, settings: Settings, undo: ExitStack) -> None:
        tighten_data(settings.data)
        self.id = server_id(settings.data)
        self.database = Database(settings.database or sqlite_url(settings.data / "proctor.db"))
        undo.callback(self.database.close)
        migrate(self.database)
        check_clock(self.database, time.time())
        self.database.prepare_space()
        self.database.write_now(save_default, settings.run_policy)
        self.blobs = open_blobs(settings, self.database)
        self.key_lock, self.vault = open_locked_vault(settings, self.database)
        self.registry = ServerRegistry(self.database, self.id, settings.url_for_peers)
        self.notifier = Notifier(self.database)
        self.main_index = MainIndex(settings.main_index, settings.allowed_names)
        self.callers = CallerCache()
        self.login_throttle = LoginThrottle()
        self.watch = AccessWatch(self.database)
        self.runs = RunService(
            self.database, settings, self.callers, self.vault, self.notifier, self.registry.id, self.blobs
        )
        self.own_host = OwnHost(settings, self.database, self.id)
        self.inspector = DatasetInspector(settings)
        self.uploads = open_uploads(settings, self.blobs)
        self.housekeeping = Housekeeping(self.database, self.blobs, self.uploads, self.registry.id)
        self.streams = quotas.stream_shares(settings.quotas)
        self.reports = quotas.report_shares()
        self.exports = quotas.export_shares()
        self.previews = quotas.preview_shares()
        self.reads = quotas.ReadTurns()
        self.arriving = quotas.ArrivingBytes(settings.quotas)
        self.sandboxes = SandboxManager(self.database, settings.data, settings.sandboxes, self.id)
        library = HubLibrary(self.database, self.blobs, venv_source(settings))
        self.sessions = Sessions(self.sandboxes, library)
        self.models = Models(settings.endpoints, os.environ, local=settings.offer_local and has_local())
        self.models.reprice(self.database.read_now(load_prices))
        self.reserver = Reserver(self.database)
        self.meter = UsageMeter(self.database, self.models, self.reserver)
        self.upstreams = Upstreams(settings.allowed_endpoint_hosts)
        self.reading = RunReading(self.database, self.runs, self.watch, self.models, settings.url, self.blobs)
        self.fetcher = SourceFetcher(self.database, self.vault, settings, self.id, self.registry.id)
        self._subscribe()
        self.database.availability.on_return += [self._return_to_database, self.reserver.renew_all]
        self.runs.after_end += [self.sandboxes.reap, self.upstreams.close_own]

    def _subscribe(self) -> None:
        """What to do when something has changed, at this server or at another."""
        notifier = self.notifier
        self.callers.when_forgotten.append(lambda: notifier.notify("people"))
        notifier.subscribe("people", lambda _: self.callers.clear())
        notifier.subscribe("people", lambda _: self.watch.wake())
        notifier.subscribe("sharing", lambda _: self.watch.recheck())
        notifier.subscribe("run", self.runs.feed.wake)
        notifier.subscribe("feed", lambda _: self.reading.feed.look_soon())
        notifier.on_gap += [
            self.callers.clear,
            self.watch.recheck,
            self.runs.feed.wake_all,
            self.reading.feed.look_soon,
        ]

    @property
    def data(self) -> Path:
        return self.settings.data

    @property
    def ledger_start(self) -> int | None:
        """What new accounts start with, in millionths of a dollar; None for no limit."""
        start = self.settings.default_balance_usd
        return None if start is None else round(start * MILLION)

    async def start(self) -> None:
        """Start background work."""
        self.loop = asyncio.get_running_loop()
        self.loop.set_default_executor(ThreadPoolExecutor(THREADS, "server"))
        is_alone = not await self.registry.start()
        self.notifier.start()
        self.watch.start()
        await self.runs.start(is_alone=is_alone)
        await self.sandboxes.start()
        self.housekeeping.start()
        self.own_host.start()

    async def wind_down(self) -> None:
        """End what still has reports to send, and wait until load balancers send requests elsewhere; after
        that, no request is answered."""
        self.is_draining = True
        until = time.monotonic() + self.settings.drain_seconds
        await self.own_host.close()
        await self.runs.feed.close()
        self.reading.feed.close()
        await asyncio.sleep(until - time.monotonic())

    def _return_to_database(self) -> None:
        """What a restart of the server would do: while the database was away, no lease could be renewed, and
        its key could be rotated."""
        self.key_lock.renew()
        ensure_key(self.database, self.vault)
        self.database.write_now(extend_leases, time.time(), self.settings.lease_seconds / 2)

    async def close(self) -> None:
        await self.fetcher.close()
        await self.upstreams.close()
        await self.meter.close()
        self.database.availability.stop_waiting()
        self.reading.feed.close()
        await self.watch.close()
        await self.housekeeping.close()
        await self.runs.close()
        await self.sandboxes.close()
        await self.reserver.close()
        await self.notifier.close()
        await self.registry.close()
        self.key_lock.close()
        self.database.close()
        self.data_lock.close()


def open_locked_vault(settings: Settings, database: Database) -> tuple[KeyLock, Vault]:
    """The database's vault, whose key cannot change while the lock is held."""
    with ExitStack() as opened:
        lock = KeyLock(settings.data, database, alone=False)
        opened.callback(lock.close)
        finish_rotation(database, key_file(settings.data, os.environ))
        vault = open_vault(
            settings.data, os.environ, lambda: settings.forget_secrets or not database.read_now(is_sealed)
        )
        ensure_key(database, vault, forget=settings.forget_secrets)
        opened.pop_all()
    return lock, vault


def open_blobs(settings: Settings, database: Database) -> Blobs:
    with ExitStack() as opened:
        opened.callback(database.close)
        store = open_store(settings, database)
        opened.pop_all()
    copies = LocalCopies(settings.data / "copies", settings.storage_cache_mb * MEGABYTE)
    return Blobs(database, store, settings.data / "incoming", copies)


def open_uploads(settings: Settings, blobs: Blobs) -> UploadParts:
    folder = settings.files_folder / "uploads"
    return PartFiles(folder) if blobs.is_on_this_disk else PartObjects(blobs.store, folder)


def make_folder(folder: Path) -> None:
    try:
        make_private_folder(folder)
        with TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise ConfigError(
            f"Cannot write to {folder} ({describe_os_error(error)}); name another folder with --data."
        ) from error
