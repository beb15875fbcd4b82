"""End open tunnels and streams once their caller loses the permission for them.

Permissions are checked when something is opened; what stays open is watched here. Once a second, and at once
when this server changes a permission, all callers are looked up together; where one's permissions have
changed, the check is repeated. So it does not matter which process made the change. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, select

from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.server.db.tables import members
from proctor.server.people.browser_sessions import list_open_sessions, session_over
from proctor.server.people.tokens import ANONYMOUS, Caller, caller_in_row, known_tokens
from proctor.server.problems import ApiError
from proctor.support.cancellation import cancel_task
from proctor.support.logs import log

LOOK_SECONDS = 1.0
AT_ONCE = 400
"""Tokens, or sessions, per query: databases limit how many values one may have."""

Check = Callable[[Caller], Awaitable[object]]


class Watched(msgspec.Struct, eq=False):
    """Something that is open."""

    caller: Caller
    check: Check
    """Raises if the caller may not have it."""
    cut: Callable[[ApiError], None]


class Rights(NamedTuple):
    """What one caller's permissions depend on."""

    is_admin: bool
    teams: frozenset[tuple[str, str]]
    scopes: frozenset[str]


class AccessWatch:
    """Everything on this server that is open for a caller."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._open: set[Watched] = set()
        self._wanted = asyncio.Event()
        self._is_recheck = False
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        await cancel_task(self._watching)

    def wake(self) -> None:
        """A permission has changed here."""
        self._wanted.set()

    def recheck(self) -> None:
        """What permissions are for has changed here: all that is open is checked again."""
        self._is_recheck = True
        self._wanted.set()

    @contextmanager
    def guard(self, caller: Caller, check: Check, cut: Callable[[ApiError], None]) -> Iterator[None]:
        """Call `cut`, once, if the caller loses the permission while this is open."""
        entry = Watched(caller, check, cut)
        self._open.add(entry)
        try:
            yield
        finally:
            self._open.discard(entry)

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), LOOK_SECONDS)
            self._wanted.clear()
            try:
                await self._look()
            except DatabaseAwayError:
                continue  # the log says so already
            except Exception:
                log.exception("could not check open streams; trying again")

    async def _look(self) -> None:
        is_recheck, self._is_recheck = self._is_recheck, False
        by_token: dict[str, list[Watched]] = {}
        for entry in self._open:
            by_token.setdefault(entry.caller.token_id, []).append(entry)
        for entry in by_token.pop(ANONYMOUS.token_id, []) if is_recheck else []:
            await self._look_at(entry, ANONYMOUS, is_recheck)
        for ids in split_batches(sorted(token_id for token_id in by_token if token_id)):
            known = await self._database.read(callers_of, ids)
            for token_id, now in known.items():
                for entry in by_token[token_id]:
                    await self._look_at(entry, now, is_recheck)
        await self._look_at_sessions()

    async def _look_at_sessions(self) -> None:
        """A browser that was logged out loses its streams, although its token is still good."""
        by_session: dict[str, list[Watched]] = {}
        for entry in self._open:
            if entry.caller.session_id:
                by_session.setdefault(entry.caller.session_id, []).append(entry)
        for ids in split_batches(sorted(by_session)):
            known = await self._database.read(list_open_sessions, ids, time.time())
            for session_id in set(ids) - known:
                for entry in by_session[session_id]:
                    self._cut(entry, session_over())

    async def _look_at(self, entry: Watched, now: Caller | ApiError, is_recheck: bool) -> None:
        try:
            if isinstance(now, ApiError):
                raise now
            if is_recheck or rights_of(now) != rights_of(entry.caller):
                await entry.check(now)
                session = (entry.caller.session_id, entry.caller.session_expires_at)
                entry.caller = replace(now, session_id=session[0], session_expires_at=session[1])
        except ApiError as error:
            self._cut(entry, error)

    def _cut(self, entry: Watched, error: ApiError) -> None:
        if entry in self._open:
            self._open.discard(entry)
            entry.cut(error)


def split_batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[first : first + AT_ONCE] for first in range(0, len(ids), AT_ONCE))


def rights_of(caller: Caller) -> Rights:
    return Rights(caller.is_admin, frozenset(caller.teams.items()), frozenset(caller.scopes))


def callers_of(connection: Connection, token_ids: Sequence[str]) -> dict[str, Caller | ApiError]:
    """The current callers of these tokens, or why they are no longer valid."""
    rows = {row.id: row for row in connection.execute(known_tokens(token_ids))}
    users = {row.user for row in rows.values() if row.user is not None}
    teams: dict[str, dict[str, str]] = {}
    for each in connection.execute(select(members).where(members.c.user.in_(users))):
        teams.setdefault(each.user, {})[each.team] = each.role
    found: dict[str, Caller | ApiError] = {}
    for token_id in token_ids:
        row = rows.get(token_id)
        try:
            found[token_id] = caller_in_row(row, teams.get(row.user, {}) if row is not None else {})
        except ApiError as error:
            found[token_id] = error
    return found
