"""The parts of a server, put together once: what routes are given.

Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from proctor.api.runs import Cause
from proctor.platform.blobs import Blobs
from proctor.platform.db.database import Database, sqlite_url
from proctor.platform.db.migrate import migrate
from proctor.platform.inference.meter import Meter
from proctor.platform.inference.models import Models
from proctor.platform.inference.upstreams import Upstreams
from proctor.platform.ledger.prices import set_prices
from proctor.platform.people.callers import Callers
from proctor.platform.settings import Settings

MILLION = 1_000_000


class Platform:
    """One server's database, files and settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.database = Database(settings.database or sqlite_url(settings.data / "proctor.db"))
        migrate(self.database)
        self.blobs = Blobs(settings.data / "blobs")
        self.callers = Callers()
        self.models = Models(settings.endpoints, os.environ)
        self.models.reprice(self.database.read_now(set_prices))
        self.meter = Meter(self.database, self.models)
        self.upstreams = Upstreams(settings.allowed_endpoint_hosts)
        self.on_exhausted: Callable[[str, Cause], Awaitable[None]] | None = None
        """Told the id of a run that may not spend any more, and why."""
        self.run_variables: Callable[[str], Awaitable[Mapping[str, str]]] | None = None
        """Gives a run's variables and secrets, among them the key of its own endpoint."""

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
        await self.upstreams.close()
        await self.meter.close()
        self.database.close()
