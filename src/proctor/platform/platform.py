"""The parts of a server, put together once: what routes are given.

Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from proctor.platform.blobs import Blobs
from proctor.platform.db.database import Database, sqlite_url
from proctor.platform.db.migrate import migrate
from proctor.platform.people.callers import Callers
from proctor.platform.secrets.proof import know_key
from proctor.platform.secrets.vault import open_vault
from proctor.platform.settings import Settings

MILLION = 1_000_000


class Platform:
    """One server's database, files and settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.database = Database(settings.database or sqlite_url(settings.data / "proctor.db"))
        migrate(self.database)
        self.vault = open_vault(settings.data, os.environ)
        know_key(self.database, self.vault, forget=settings.forget_secrets)
        self.blobs = Blobs(settings.data / "blobs")
        self.callers = Callers()

    @property
    def data(self) -> Path:
        return self.settings.data

    @property
    def ledger_start(self) -> int | None:
        """What new accounts have, in millionths of a dollar; None: nothing limits them."""
        start = self.settings.default_balance_usd
        return None if start is None else round(start * MILLION)

    async def start(self) -> None:
        """Begin what goes on beside requests."""
        self.loop = asyncio.get_running_loop()

    async def close(self) -> None:
        self.database.close()
