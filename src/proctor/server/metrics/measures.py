"""Everything a server measures, gathered from its parts.

No label holds what a user chose: models that the operator offers by name have theirs, all others are one.
Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from proctor.server.db.availability import DatabaseAwayError
from proctor.server.ledger.calls import LedgerCall
from proctor.server.metrics.stored import StoredWork, count_work
from proctor.server.platform import Platform
from proctor.support.metrics import Counter, Gauge, Metric, TimeHistogram, Values, measure_process

STORED_SECONDS = 10.0
"""How old the database's figures may be: scraping often must not load it."""
PATIENCE_SECONDS = 2.0
"""How long an answer waits for the database; without it, the database's figures are left out."""
MOST_MODELS = 100
OTHER = "other"


class ServerMeasures:
    """The measures of one platform, counted from now on."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._stored: StoredWork | None = None
        self._stored_until = 0.0
        self._looking = asyncio.Lock()
        self._offered = {model.id for model in platform.models.list_models()[:MOST_MODELS]}
        self.claims = Counter("proctor_claims_total", "Runs handed to hosts.")
        self.rollouts = Counter(
            "proctor_rollouts_reported_total", "Rollouts in the reports that were stored, repeated ones too."
        )
        self.calls = Counter("proctor_gateway_calls_total", "Model calls that were booked.", ("model",))
        self.tokens = Counter(
            "proctor_gateway_tokens_total", "Tokens of booked calls.", ("model", "direction")
        )
        self.database_seconds = TimeHistogram(
            "proctor_database_seconds", "Time of a transaction, waiting for a thread included.", ("kind",)
        )
        platform.runs.on_claim.append(self.claims.add)
        platform.runs.on_report.append(self.rollouts.add)
        platform.meter.on_booked.append(self._count_call)
        platform.database.on_done.append(lambda kind, seconds: self.database_seconds.observe(seconds, kind))

    @property
    def metrics(self) -> list[Metric]:
        platform = self._platform
        database = platform.database
        return [
            self.claims,
            self.rollouts,
            self.calls,
            self.tokens,
            self.database_seconds,
            Gauge(
                "proctor_database_up",
                "Whether the database answered when it was last needed.",
                lambda: float(database.availability.reason is None),
            ),
            Gauge("proctor_database_waiting", "Transactions that wait for a thread.", database.count_waiting),
            Gauge(
                "proctor_database_connections_in_use",
                "Connections of the pool that are in use.",
                database.count_in_use,
            ),
            Gauge("proctor_database_connections", "Size of the pool.", lambda: database.pool_size),
            Gauge(
                "proctor_runs",
                "Hosted runs by status; the same at every server of one database.",
                self._from_stored(lambda stored: {(name,): count for name, count in stored.runs.items()}),
                ("status",),
            ),
            Gauge(
                "proctor_queue_oldest_seconds",
                "How long the oldest pending run has waited.",
                self._from_stored(lambda stored: {(): stored.oldest_seconds}),
            ),
            Gauge(
                "proctor_hosts_connected",
                "Hosts that were in contact lately.",
                self._from_stored(lambda stored: {(): stored.hosts}),
            ),
            Gauge("proctor_followers", "Followers of runs.", lambda: platform.runs.feed.followers),
            Gauge("proctor_streams_open", "Event streams and downloads.", lambda: platform.streams.in_all),
            Gauge(
                "proctor_runner_slots",
                "Runs that this process plays at once.",
                lambda: platform.settings.runs_at_once,
            ),
            *measure_process(),
        ]

    async def refresh(self) -> None:
        """Look at the database, unless that was done a moment ago."""
        async with self._looking:
            if time.monotonic() < self._stored_until:
                return
            self._stored = None
            with suppress(TimeoutError, DatabaseAwayError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    self._stored = await self._platform.database.read(count_work, time.time())
            self._stored_until = time.monotonic() + STORED_SECONDS

    def _from_stored(self, values: Callable[[StoredWork], Values]) -> Callable[[], Values]:
        return lambda: {} if self._stored is None else values(self._stored)

    def _count_call(self, call: LedgerCall) -> None:
        model = call.model if call.model in self._offered else OTHER
        self.calls.add(1, model)
        usage = call.usage
        for direction, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self.tokens.add(count, model, direction)
