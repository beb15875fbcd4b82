"""Tell the other servers on one PostgreSQL that something has changed, by NOTIFY, and learn of it by LISTEN.

A notification is a topic and an id, never what has changed: that is read from the database, which is also
where a server catches up after its listening connection was lost. Those of a few milliseconds are sent
together, after the transactions they are about: a transaction that notifies waits for every other that does.
On SQLite there is no other server. Knows nothing of its subscribers.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

import psycopg
from sqlalchemy import Connection, text

from proctor.server.db.availability import DatabaseAwayError
from proctor.server.db.database import Database
from proctor.support.cancellation import cancel_task
from proctor.support.logs import log

CHANNEL = "proctor"
BATCH_SECONDS = 0.03
AT_ONCE = 500
RECONNECT_SECONDS = 0.25
PROBE_SECONDS = 10.0
"""How often to ask a silent connection whether it is still one."""
ANSWER_SECONDS = 5.0
EVERYONE = "*"
"""The sender of a notification that all servers receive, including its own."""

NotifiedTopic = Literal["run", "people", "sharing", "feed"]
"""A run has new events; a user's permissions, or the readers of a run, have changed; there is something to
announce."""
Handler = Callable[[str], None]

SEND = text(f"SELECT pg_notify('{CHANNEL}', payload) FROM unnest(CAST(:payloads AS TEXT[])) AS payload")


class Notifier:
    """The notifications of one server."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._id = secrets.token_hex(6)
        self._handlers: defaultdict[str, list[Handler]] = defaultdict(list)
        self.on_gap: list[Callable[[], None]] = []
        """Called when notifications may have been missed."""
        self.is_listening = database.is_sqlite
        """Whether changes by other servers are noticed at once."""
        self._unsent: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None

    def subscribe(self, topic: NotifiedTopic, handler: Handler) -> None:
        self._handlers[topic].append(handler)

    def notify(self, topic: NotifiedTopic, name: str = "") -> None:
        """Tell this server at once, and the others soon."""
        self._call_handlers(topic, name)
        if not self._database.is_sqlite:
            self._unsent[f"{self._id} {topic} {name}"] = None
            if self._sending is None:
                self._sending = asyncio.create_task(self._send_all())

    def start(self) -> None:
        if not self._database.is_sqlite:
            self._listening = asyncio.create_task(self._listen_on())

    async def close(self) -> None:
        """What was not sent is sent, unless the database is away."""
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=ANSWER_SECONDS)
        for task in (self._sending, self._listening):
            await cancel_task(task)

    def _call_handlers(self, topic: str, name: str) -> None:
        for handler in self._handlers[topic]:
            handler(name)

    # To the others

    async def _send_all(self) -> None:
        try:
            while self._unsent:
                await asyncio.sleep(BATCH_SECONDS)
                batch, self._unsent = list(self._unsent), {}
                for start in range(0, len(batch), AT_ONCE):
                    await self._database.write(send, batch[start : start + AT_ONCE])
        except DatabaseAwayError:
            pass  # the others lost their connections too, and catch up
        except Exception:
            log.exception("could not notify the other servers; they find changes by themselves, later")
        finally:
            self._sending = None

    # From the others

    async def _listen_on(self) -> None:
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError, TimeoutError) as error:
                log.debug("the listening connection was lost: %s", error)
            except Exception:
                log.exception("could not listen to the other servers; trying again")
            self.is_listening = False
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        async with asyncio.timeout(ANSWER_SECONDS):
            connection = await self._database.connect_to_listen()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.execute(f"LISTEN {CHANNEL}")
            self.is_listening = True
            for catch_up in self.on_gap:
                catch_up()
            while True:
                async for notification in connection.notifies(timeout=PROBE_SECONDS):
                    self._take_notification(notification.payload)
                async with asyncio.timeout(ANSWER_SECONDS):
                    await connection.execute("SELECT 1")
        finally:
            with suppress(psycopg.Error, OSError, TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await connection.close()

    def _take_notification(self, payload: str) -> None:
        sender, _, rest = payload.partition(" ")
        topic, _, name = rest.partition(" ")
        if sender != self._id:
            self._call_handlers(topic, name)


def send(connection: Connection, payloads: Sequence[str]) -> None:
    connection.execute(SEND, {"payloads": list(payloads)})


def notify_everyone(connection: Connection, topic: NotifiedTopic) -> None:
    """Notify in the transaction of the change; for changes that are rare."""
    if connection.dialect.name == "postgresql":
        send(connection, [f"{EVERYONE} {topic} "])
