"""The parts of a server, assembled once and passed to routes.

Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile

from proctor.errors import ConfigError, describe_os_error
from proctor.server import quotas
from proctor.server.blobs import Blobs
from proctor.server.data_lock import DataLock
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
from proctor.server.ledger.prices import load_prices
from proctor.server.own_host import OwnHost
from proctor.server.people.callers import CallerCache
from proctor.server.people.guesses import GuessLimiter
from proctor.server.people.watch import AccessWatch
from proctor.server.private_files import make_private_folder, tighten_data
from proctor.server.reading.library import RunReading
from proctor.server.runs.queue import extend_leases
from proctor.server.runs.service import RunService
from proctor.server.sandboxes.hub_library import HubLibrary, venv_source
from proctor.server.sandboxes.lifecycle import SandboxManager
from proctor.server.sandboxes.sessions import Sessions
from proctor.server.secrets.key_check import ensure_key, is_sealed
from proctor.server.secrets.key_lock import KeyLock
from proctor.server.secrets.rotation import finish_rotation
from proctor.server.secrets.vault import Vault, key_file, open_vault
from proctor.server.settings import Settings
from proctor.server.sources.fetching import SourceFetcher

MILLION = 1_000_000


class Platform:
    """One server's database, files and settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        make_folder(settings.data)
        self.data_lock = DataLock(settings.data, settings.url, settings.own_url)
        try:
            self._open(settings)
        except BaseException:
            self.data_lock.close()
            raise

    def _open(self, settings: Settings) -> None:
        tighten_data(settings.data)
        self.id = server_id(settings.data)
        self.database = Database(settings.database or sqlite_url(settings.data / "proctor.db"))
        migrate(self.database)
        self.database.prepare_space()
        self.database.write_now(save_default, settings.run_policy)
        self.key_lock, self.vault = open_locked_vault(settings, self.database)
        self.blobs = Blobs(settings.data / "blobs")
        self.main_index = MainIndex(settings.main_index, settings.allowed_names)
        self.callers = CallerCache()
        self.guesses = GuessLimiter()
        self.watch = AccessWatch(self.database)
        self.callers.when_forgotten.append(self.watch.wake)
        self.runs = RunService(self.database, settings, self.callers, self.vault)
        self.own_host = OwnHost(settings, self.database, self.id)
        self.fetcher = SourceFetcher(self.database, self.vault, settings)
        self.housekeeping = Housekeeping(self.database)
        self.streams = quotas.stream_shares(settings.quotas)
        self.reports = quotas.report_shares()
        self.exports = quotas.export_shares()
        self.publishing = asyncio.Lock()
        """Held while a version is written, or while files without a version are removed."""
        self.sandboxes = SandboxManager(self.database, settings.data, settings.sandboxes, self.id)
        library = HubLibrary(self.database, self.blobs, venv_source(settings))
        self.sessions = Sessions(self.sandboxes, library)
        self.models = Models(settings.endpoints, os.environ, local=settings.offer_local and has_local())
        self.models.reprice(self.database.read_now(load_prices))
        self.reserver = Reserver(self.database)
        self.meter = UsageMeter(self.database, self.models, self.reserver)
        self.upstreams = Upstreams(settings.allowed_endpoint_hosts)
        self.reading = RunReading(self.database, self.runs, self.watch, self.models, settings.url)
        self.database.availability.on_return += [self._return_to_database, self.reserver.renew_all]
        self.runs.after_end += [self.sandboxes.reap, self.upstreams.close_own]

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
        self.watch.start()
        await self.runs.start()
        await self.sandboxes.start()
        self.housekeeping.start()
        self.own_host.start()

    async def wind_down(self) -> None:
        """End what still has reports to send; after that, no request is answered."""
        await self.own_host.close()
        await self.runs.feed.close()
        self.reading.feed.close()

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
        self.key_lock.close()
        self.database.close()
        self.data_lock.close()


def open_locked_vault(settings: Settings, database: Database) -> tuple[KeyLock, Vault]:
    """The database's vault, whose key cannot change while the lock is held."""
    with ExitStack() as opened:
        opened.callback(database.close)
        lock = KeyLock(settings.data, database, alone=False)
        opened.callback(lock.close)
        finish_rotation(database, key_file(settings.data, os.environ))
        vault = open_vault(
            settings.data, os.environ, lambda: settings.forget_secrets or not database.read_now(is_sealed)
        )
        ensure_key(database, vault, forget=settings.forget_secrets)
        opened.pop_all()
    return lock, vault


def make_folder(folder: Path) -> None:
    try:
        make_private_folder(folder)
        with TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise ConfigError(
            f"Cannot write to {folder} ({describe_os_error(error)}); name another folder with --data."
        ) from error
