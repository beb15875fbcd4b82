"""Runs, and what happens outside the database when they change: notify followers, revoke tokens, release
holds.

A sweep repeats everything that must happen after a run has ended, so that a server that was killed in between
leaves nothing undone. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace
from sqlalchemy import Connection, delete, select

from proctor.api.runner import Ending, LostRun, ReportReply, RunAssignment
from proctor.api.runs import Cause, RunInfo
from proctor.run import ENDED
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.db.leases import hold
from proctor.server.db.tables import attempt_secrets, holds, run_secrets, runs
from proctor.server.notifier import Notifier
from proctor.server.people.callers import CallerCache
from proctor.server.problems import ApiError
from proctor.server.runs import assignments, incoming, queue, records, reports, rights
from proctor.server.runs.follow import Feed
from proctor.server.runs.stored_events import EventLogs
from proctor.server.secrets.redaction import Redactor
from proctor.server.secrets.vault import Vault
from proctor.server.settings import MEGABYTE, Settings
from proctor.server.singleflight import SingleFlight
from proctor.server.storage.blobs import Blobs
from proctor.support.cancellation import cancel_task
from proctor.support.logs import log

SWEEP_SECONDS = 1.0
SWEEP_LEASE_SECONDS = 4.0
"""How soon another server sweeps if the one that does is gone."""
MOST_REDACTORS = 1_000
REPORT_READERS = 2
LONGEST_CAUSE = 4_000
TIDY_SECONDS = 60.0
"""How soon to finish what a killed server left undone, if another server is running."""

P = ParamSpec("P")
T = TypeVar("T")


KEPT_SECRETS_SECONDS = 7 * 86_400.0
"""How long to keep the secrets of a run that did not finish, so that it can be resumed."""

Stop = Callable[[Connection, str, Cause, float], None]


class RunService:
    """Changes runs, and notifies everything that depends on them."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        callers: CallerCache,
        vault: Vault,
        notifier: Notifier,
        holder: str,
        blobs: Blobs,
    ) -> None:
        self.database = database
        self._notifier = notifier
        self._holder = holder
        self.vault = vault
        self.settings = settings
        self.callers = callers
        self.event_logs = EventLogs(database, blobs)
        self.feed = Feed(database, notifier, self.event_logs)
        self._sweeping: asyncio.Task[None] | None = None
        self.after_end: list[Callable[[str], Awaitable[None]]] = []
        """Called when an attempt is over."""
        self.on_claim: list[Callable[[], None]] = []
        self.on_report: list[Callable[[int], None]] = []
        """Told how many rollouts a stored report has."""
        self._summaries: SingleFlight[str, RunInfo] = SingleFlight()
        self._background: set[asyncio.Task[None]] = set()
        self._readers = ThreadPoolExecutor(REPORT_READERS, "report-read")
        self._redactors: dict[str, tuple[int | None, Redactor]] = {}
        """Of the runs that are being played."""

    async def start(self, *, is_alone: bool) -> None:
        if is_alone:  # twice as long as a host takes to renew its lease, which no other server could do
            await self.database.write(queue.extend_leases, time.time(), self.settings.lease_seconds / 2)
        self._sweeping = asyncio.create_task(self._sweep_on())
        self.beside(self._summarize_ended(await self.database.read(records.list_unscored)))

    async def _summarize_ended(self, ids: Sequence[str]) -> None:
        """Make the reports of runs that have ended, so that lists have their scores."""
        for run_id in ids:
            try:
                await self.read_summarized(run_id)
            except (ApiError, DatabaseAwayError):  # it was deleted; the next reader tries again
                continue
            except Exception:
                log.exception("could not make the report of %s", run_id)

    async def close(self) -> None:
        await self.feed.close()
        for task in list(self._background):
            task.cancel()
        self._readers.shutdown(wait=False)
        await cancel_task(self._sweeping)

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def change(
        self,
        work: Callable[Concatenate[Connection, str, P], T],
        run_id: str,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Change a run, and notify its followers."""
        done = await self.database.write(work, run_id, *args, **kwargs)
        self._notifier.notify("run", run_id)
        return done

    async def claim(self, host: str, delegate: bool = False) -> RunAssignment | None:
        order = await self.database.write(
            assignments.claim_assignment, self.vault, self.settings, host, delegate
        )
        if order is not None:
            self.callers.forget()
            self._notifier.notify("run", order.run_id)
            for notify in self.on_claim:
                notify()
        return order

    async def take_report(self, run_id: str, attempt: int | None, body: bytes) -> ReportReply:
        """Decode a report, redact it and store it: outside the event loop, in two steps of which only the
        second uses the database."""
        is_upload = attempt is None
        redactor = None if is_upload else await self._redactor(run_id, attempt)
        news = await self._in_reader_thread(
            lambda: incoming.prepare(incoming.read_report(body, strict=is_upload), redactor)
        )
        most_bytes = self.settings.quotas.run_storage_mb * MEGABYTE
        reply = await self.change(reports.take_report, run_id, attempt, news, time.time(), most_bytes)
        for notify in self.on_report:
            notify(len(news.rows))
        return reply

    async def redact_ending(self, run_id: str, attempt: int | None, ending: Ending) -> Ending:
        redactor = await self._redactor(run_id, attempt)
        metadata = await self._in_reader_thread(lambda: redactor.value(ending.metadata))
        return replace(
            ending,
            cause=None if ending.cause is None else redact_cause(ending.cause, redactor),
            metadata=metadata,
        )

    async def _in_reader_thread(self, work: Callable[[], T]) -> T:
        """Run slow work in a thread that no other work waits for."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def redact_loss(self, run_id: str, attempt: int | None, lost: LostRun) -> LostRun:
        return replace(lost, cause=redact_cause(lost.cause, await self._redactor(run_id, attempt)))

    async def _redactor(self, run_id: str, attempt: int | None) -> Redactor:
        """The secrets of an attempt do not change while it plays."""
        known = self._redactors.get(run_id)
        if known is None or known[0] != attempt:
            values = await self.database.read(assignments.values_to_redact, self.vault, run_id)
            if len(self._redactors) >= MOST_REDACTORS:  # of runs that ended at other servers
                self._redactors.clear()
            known = self._redactors[run_id] = (attempt, Redactor(values))
        return known[1]

    async def read_summarized(self, run_id: str) -> RunInfo:
        """A run with its report, which is computed at the first request, once for all requests."""
        return await self._summaries.ask(run_id, lambda: self._read_summarized(run_id))

    async def _read_summarized(self, run_id: str) -> RunInfo:
        """Outside the writer, because it reads every row."""
        made = await self.database.read(records.summarize, run_id)
        if made is not None:
            await self.database.write(records.save_summary, run_id, *made)

        def work(connection: Connection) -> RunInfo:
            return records.build_run_info(connection, queue.find_run(connection, run_id))

        return await self.database.read(work)

    async def variables(self, run_id: str) -> Mapping[str, str]:
        def work(connection: Connection) -> Mapping[str, str]:
            return assignments.resolve_variables(connection, self.vault, queue.find_run(connection, run_id))

        return await self.database.read(work)

    async def stop(self, run_id: str, why: Cause, work: Stop = queue.stop) -> None:
        """`work` is what stops it, for callers that do more in the same transaction."""
        await self.change(work, run_id, why, time.time())
        self.callers.forget()
        await self.tidy()  # a pending run has ended

    async def note(self, run_id: str, why: Cause) -> None:
        """Record what explains a possible failure of the run."""
        await self.change(queue.record_cause, run_id, why, time.time())

    async def handle_end(self, run_id: str) -> None:
        """An attempt is over: revoke its token."""
        self.callers.forget()
        self._redactors.pop(run_id, None)
        for let_go in self.after_end:
            await let_go(run_id)
        await self.tidy()
        self._notifier.notify("run", run_id)
        self.beside(self._summarize_ended([run_id]))

    async def tidy(self) -> None:
        """Finish what is left to do for runs that have ended."""
        await self.database.write(settle_ended_runs, time.time())

    async def sweep(self) -> None:
        """Runs whose host is silent, whose time is up, or whose owner may no longer have them played; on one
        of the servers."""
        changed = await self.database.write(sweep_all, self._holder, time.time(), self.settings.most_crashes)
        if changed:
            self.callers.forget()
            await self.tidy()
        for run_id in changed:
            self._notifier.notify("run", run_id)

    async def _sweep_on(self) -> None:
        tidy_at = 0.0
        while True:
            try:
                if time.monotonic() > tidy_at:
                    await self.tidy()
                    tidy_at = time.monotonic() + TIDY_SECONDS
                await self.sweep()
            except DatabaseAwayError:
                continue  # the log says so already
            except Exception:
                log.exception("could not sweep the runs; trying again")
            await asyncio.sleep(SWEEP_SECONDS)


def sweep_all(connection: Connection, holder: str, now: float, most_crashes: int) -> list[str]:
    if hold(connection, "sweep", holder, SWEEP_LEASE_SECONDS) is None:
        return []
    return queue.sweep(connection, now, most_crashes) + rights.stop_disallowed(connection, now)


def redact_cause(why: Cause, redactor: Redactor) -> Cause:
    message, next_step = redactor.text(why.message), redactor.text(why.next_step)
    return replace(why, message=message[:LONGEST_CAUSE], next_step=next_step[:LONGEST_CAUSE])


def settle_ended_runs(connection: Connection, now: float) -> None:
    """Release what was held for runs that have ended, and delete secrets that are no longer needed."""
    ended = select(runs.c.id).where(runs.c.status.in_(ENDED))
    connection.execute(delete(holds).where(holds.c.run_id.in_(ended)))
    settled = runs.c.planned.is_(None) | (runs.c.settled >= runs.c.planned)
    nothing_owed = (runs.c.status == "finished") & settled
    done = ended.where(nothing_owed | (runs.c.ended_at < now - KEPT_SECRETS_SECONDS))
    for table in (run_secrets, attempt_secrets):
        connection.execute(delete(table).where(table.c.run_id.in_(done)))
