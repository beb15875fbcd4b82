"""What changes on the server, for all followers: one look at the database serves them all.

While there are followers, runs in progress, checks in progress and the followers' balances are polled twice a
second, and at once when a server reports a change. Each follower gets what they may read, combined; one that
does not keep up is asked to read everything again, and one whose session ends is cut off at once. Knows
nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Row

from proctor.api.feed import FeedEvent, RunChange, describe_change
from proctor.reading.feed_queue import FeedQueue
from proctor.reading.scores import progress_of_summary, score_of_summary
from proctor.run import ENDED
from proctor.server.announcements import Announcement
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
    may_know_change,
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
SCORE_SECONDS = 0.5
"""How long to compute scores for one look; then runs are announced with the last known one."""


class FeedFollower(FeedQueue):
    """One open feed."""

    def __init__(self, caller: Caller) -> None:
        super().__init__()
        self.caller = caller


class RunFeed:
    """The followers of this server, and what they are sent."""

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
        self._is_closed = False

    # For those who change runs

    def wake(self, run_id: str) -> None:
        """A run has changed."""
        if self._followers:
            self._woken.add(run_id)
            self._wanted.set()

    def look_soon(self) -> None:
        """Something else was announced, or may have been."""
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
            if now.teams != follower.caller.teams:  # also of a team that is gone, or has another name
                follower.send(FeedEvent(kind="change", at=time.time(), action="member.set", target=now.user))
            follower.caller = now

        def cut(_: ApiError) -> None:
            follower.end()

        self._followers.add(follower)
        self._start()
        try:
            with self._watch.guard(caller, check, cut):
                await self._has_looked.wait()
                yield None
                if not self._is_closed:
                    async for event in follower.events():
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

    # Looking

    async def _look_on(self) -> None:
        state: ChangeState | None = None
        while True:
            self._wanted.clear()
            woken, self._woken = self._woken, set()
            users = {follower.caller.user for follower in self._followers}
            try:
                look = await self._database.read(look_for_changes, state, woken, users, time.time())
                self._send_announced(look.announced)
                await self._send_changes(with_deleted_runs(look))
                labelled = {each.subject for each in look.announced if each.kind == "labels"}
                await self._send_labels(labelled)
                state = look.state
                self._has_looked.set()
            except DatabaseAwayError:
                self._woken |= woken
            except Exception:
                log.exception("could not look for changes; trying again")
            await asyncio.sleep(PAUSE_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), LOOK_SECONDS - PAUSE_SECONDS)

    def _send_announced(self, announced: Sequence[Announcement]) -> None:
        now = time.time()
        for follower in self._followers:
            events = [build_event(each, now) for each in announced if each.is_for(follower.caller)]
            for event in dict.fromkeys(event for event in events if event is not None):
                follower.send(event)

    async def _send_changes(self, look: Look) -> None:
        now = time.time()
        for follower in list(self._followers):
            if follower.caller.user in look.balances:
                balance = look.balances[follower.caller.user]
                follower.send(FeedEvent(kind="balance", at=now, balance_usd=balance))
            for entry in look.entries:
                if may_know_change(follower.caller, entry):
                    follower.send(FeedEvent(kind="change", at=now, action=entry.action, target=entry.target))
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

    async def _send_labels(self, ids: set[str]) -> None:
        if not ids:
            return
        rows = await self._database.read(read_whole_rows, sorted(ids))
        callers = {identify(follower.caller): follower.caller for follower in self._followers}
        audience = await self._database.read(find_audience, callers, rows, [], [])
        now = time.time()
        for follower in list(self._followers):
            seen = audience.get(identify(follower.caller))
            for run_id in () if seen is None else seen.runs:
                follower.send(FeedEvent(kind="labels", at=now, run_id=run_id))

    async def _build_changes(self, ids: Sequence[str]) -> dict[str, RunChange]:
        until = time.monotonic() + SCORE_SECONDS
        rows = await self._database.read(read_whole_rows, ids)
        return {row.id: await self._build_change(row, time.monotonic() < until) for row in rows}

    async def _build_change(self, row: Row[Any], is_fresh: bool) -> RunChange:
        """Where a run stands, by the function that describes it elsewhere."""
        info = records.describe_row(row, None, records.QueueState())
        if row.status in ENDED:
            if info.score is None:
                info = await self._service.read_summarized(row.id)
            return describe_change(info)
        opened = self._opened.open(row.id)
        summary = await opened.summary(row) if is_fresh else opened.last_summary
        if summary is not None:
            progress = progress_of_summary(summary, row.planned)
            info = replace(info, score=score_of_summary(summary), progress=progress)
        return describe_change(info)


def identify(caller: Caller) -> Any:
    """A key: equal for callers with the same permissions."""
    teams = frozenset(caller.teams.items())
    return caller.kind, caller.user, caller.run_id, caller.is_admin, teams, caller.scopes


def limit_change(change: RunChange, access: Access) -> RunChange:
    return change if access == "owner" else replace(change, cost_usd=None)


def with_deleted_runs(look: Look) -> Look:
    gone = [each.audience.run for each in look.announced if each.audience.run is not None]
    known = {run.id for run in gone}
    return replace(look, deleted=[*gone, *(row for row in look.deleted if row.id not in known)])


def build_event(announced: Announcement, at: float) -> FeedEvent | None:
    """The event that everyone in its audience receives; None if it depends on the reader."""
    match announced.kind:
        case "environment":
            return FeedEvent(kind="environment", at=at, environment=announced.subject)
        case "dataset":
            return FeedEvent(kind="dataset", at=at, dataset=announced.subject)
        case "source":
            return FeedEvent(kind="source", at=at, source=announced.subject)
        case "labels" | "run_deleted":
            return None


def build_check_event(check: CheckState, at: float) -> FeedEvent:
    return FeedEvent(kind="check", at=at, environment=check.environment, version=check.version)
