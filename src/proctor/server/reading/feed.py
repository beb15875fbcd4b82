"""What changes on the server, for everyone who follows: one look at the database for all of them.

While somebody follows, runs in progress, checks in progress and the followers' balances are looked at twice a
second, and at once when this server changes a run. Each follower gets what they may read, combined; one that
does not keep up is told to ask for everything again, and one that loses their session is cut off at once.
Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Row

from proctor.api.feed import FeedEvent, RunChange
from proctor.api.runs import RunInfo
from proctor.reading.scores import progress_of_summary, score_of_summary
from proctor.run import ENDED
from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.people.tokens import Caller
from proctor.server.people.watch import AccessWatch
from proctor.server.problems import ApiError
from proctor.server.reading.changes import (
    ChangeState,
    CheckState,
    Look,
    find_audience,
    look_for_changes,
    read_whole_rows,
)
from proctor.server.reading.open_runs import OpenRuns
from proctor.server.runs import records
from proctor.server.runs.service import RunService
from proctor.server.runs.sharing import Access
from proctor.support.logs import log

LOOK_SECONDS = 0.5
PAUSE_SECONDS = 0.25
"""At least this long between two looks, so that changes of one run are combined."""
QUIET_SECONDS = 15.0
MOST_WAITING = 500
SCORE_SECONDS = 0.5
"""How long to compute scores for one look; then runs are announced with the last known one."""


class FeedFollower:
    """One open feed."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.queue: asyncio.Queue[FeedEvent | None] = asyncio.Queue(MOST_WAITING)
        """None ends it."""

    def send(self, event: FeedEvent) -> None:
        if self.queue.full():
            self.drop_all()
            event = FeedEvent(kind="resync", at=event.at)
        self.queue.put_nowait(event)

    def end(self) -> None:
        self.drop_all()
        self.queue.put_nowait(None)

    def drop_all(self) -> None:
        while not self.queue.empty():
            self.queue.get_nowait()


class RunFeed:
    """Everyone who follows this server."""

    def __init__(self, database: Database, service: RunService, watch: AccessWatch, opened: OpenRuns) -> None:
        self._database = database
        self._service = service
        self._watch = watch
        self._opened = opened
        self._followers: set[FeedFollower] = set()
        self._looking: asyncio.Task[None] | None = None
        self._has_looked = asyncio.Event()
        self._wanted = asyncio.Event()
        self._woken: set[str] = set()
        self._deleted: list[Row[Any]] = []
        self._is_closed = False

    # For those who change runs

    def wake(self, run_id: str) -> None:
        """A run has changed."""
        if self._followers:
            self._woken.add(run_id)
            self._wanted.set()

    def note_deleted(self, run: Row[Any]) -> None:
        self._opened.forget(run.id)
        if self._followers:
            self._deleted.append(run)
            self._wanted.set()

    def close(self) -> None:
        """End every feed; browsers will ask the next server."""
        self._is_closed = True
        for follower in self._followers:
            follower.end()

    # For followers

    async def follow(self, caller: Caller) -> AsyncIterator[FeedEvent | None]:
        """What changes from now on, which is the first None; others come while nothing does. Ends when the
        caller may no longer read runs."""
        follower = FeedFollower(caller)

        async def check(now: Caller) -> None:
            now.need("runs:read")
            follower.caller = now

        def cut(_: ApiError) -> None:
            follower.end()

        self._followers.add(follower)
        self._start()
        try:
            with self._watch.watched(caller, check, cut):
                await self._has_looked.wait()
                yield None
                while not self._is_closed:
                    try:
                        event = await asyncio.wait_for(follower.queue.get(), QUIET_SECONDS)
                    except TimeoutError:
                        yield None
                        continue
                    if event is None:
                        return
                    yield event
        finally:
            self._followers.discard(follower)
            if not self._followers:
                self._stop()

    def _start(self) -> None:
        if self._looking is None:
            self._has_looked.clear()
            self._looking = asyncio.create_task(self._look_on())

    def _stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self._woken.clear()
        self._deleted.clear()

    # Looking

    async def _look_on(self) -> None:
        state: ChangeState | None = None
        while True:
            self._wanted.clear()
            woken, self._woken = self._woken, set()
            deleted, self._deleted = self._deleted, []
            users = {follower.caller.user for follower in self._followers}
            try:
                look = await self._database.read(look_for_changes, state, woken, users, time.time())
                await self._tell(replace(look, deleted=[*look.deleted, *deleted]))
                state = look.state
                self._has_looked.set()
            except DatabaseAwayError:
                self._woken |= woken
                self._deleted += deleted
            except Exception:
                log.exception("could not look for changes; trying again")
            await asyncio.sleep(PAUSE_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), LOOK_SECONDS - PAUSE_SECONDS)

    async def _tell(self, look: Look) -> None:
        now = time.time()
        for follower in list(self._followers):
            if follower.caller.user in look.balances:
                balance = look.balances[follower.caller.user]
                follower.send(FeedEvent(kind="balance", at=now, balance_usd=balance))
        if not (look.changed or look.deleted or look.checks):
            return
        changes = await self._build_changes([row.id for row in look.changed])
        callers = {identify(follower.caller): follower.caller for follower in self._followers}
        audience = await self._database.read(find_audience, callers, look.changed, look.deleted, look.checks)
        gone = {run.id for run in look.deleted}
        for follower in list(self._followers):
            seen = audience.get(identify(follower.caller))
            if seen is None:
                continue
            for run_id, access in seen.runs.items():
                if run_id in gone:
                    follower.send(FeedEvent(kind="run_deleted", at=now, run_id=run_id))
                elif run_id in changes:
                    change = limit_change(changes[run_id], access)
                    follower.send(FeedEvent(kind="run", at=now, run=change))
            for check in look.checks:
                if check.environment_id in seen.environments:
                    follower.send(build_check_event(check, now))

    async def _build_changes(self, ids: Sequence[str]) -> dict[str, RunChange]:
        until = time.monotonic() + SCORE_SECONDS
        rows = await self._database.read(read_whole_rows, ids)
        return {row.id: await self._build_change(row, time.monotonic() < until) for row in rows}

    async def _build_change(self, row: Row[Any], is_fresh: bool) -> RunChange:
        """Where a run stands, by the function that describes it elsewhere."""
        info = records.describe_row(row, None, records.QueueState())
        if row.status in ENDED:
            if info.score is None:
                info = await self._service.read_summarised(row.id)
            return change_of(info)
        opened = self._opened.open(row.id)
        summary = await opened.summary(row) if is_fresh else opened.last_summary
        if summary is not None:
            progress = progress_of_summary(summary, row.planned)
            info = replace(info, score=score_of_summary(summary), progress=progress)
        return change_of(info)


def identify(caller: Caller) -> Any:
    """The same for callers who may read the same."""
    teams = frozenset(caller.teams.items())
    return caller.kind, caller.user, caller.run_id, caller.is_admin, teams, caller.scopes


def change_of(info: RunInfo) -> RunChange:
    return RunChange(
        id=info.id,
        status=info.status,
        progress=info.progress,
        score=info.score,
        cost_usd=info.cost_usd,
        input_tokens=info.input_tokens,
        output_tokens=info.output_tokens,
        last_seq=info.last_seq,
        cause=info.cause,
        ended_at=info.ended_at,
    )


def limit_change(change: RunChange, access: Access) -> RunChange:
    return change if access == "owner" else replace(change, cost_usd=None)


def build_check_event(check: CheckState, at: float) -> FeedEvent:
    return FeedEvent(kind="check", at=at, environment=check.environment, version=check.version)
