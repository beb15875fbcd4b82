"""One interface to either database: functions of a connection, each in a transaction of its own.

    await database.read(records.find_user, "ada")
    await database.write(records.add_user, new_user)

They are ordinary synchronous code, run in threads: SQLite gets a single writer, so that nothing waits for a
lock. When PostgreSQL goes away, callers wait until it is back, and the function is run again unless it was
committed; it must therefore change nothing but the database. Knows nothing of tables.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool, QueuePool

from proctor.errors import ConfigError
from proctor.server.db import space
from proctor.server.db.availability import PATIENCE_SECONDS, SILENT_SECONDS, Availability
from proctor.server.db.commits import LostConnectionError, SingleCommit, open_connection
from proctor.server.private_files import claim_database
from proctor.support.logs import log

READERS = 4
WRITERS = 4
BUSY_SECONDS = 30.0
PRAGMAS = (
    "auto_vacuum = INCREMENTAL",  # first: the others write to a new file
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "foreign_keys = ON",
)
POSTGRES_TIMEOUTS: dict[str, int] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""How soon a thread notices that the other side is gone; those in the database's address come first."""

IDLE_MILLISECONDS = 15_000
"""How long a transaction that writes may wait for its server: one that was paused must not hold its locks."""

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[Concatenate[Connection, P], T]


class Database:
    """Runs functions of a connection, to read or to write."""

    def __init__(self, url: str) -> None:
        self.url = parse_database_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite and self.url.database and self.url.database != ":memory:":
            own(Path(self.url.database))
        self._writing = self._engine(writes=True)
        self._reading = self._engine(writes=False)
        self._looking = self._reading if self.is_sqlite else self._postgres(poolclass=NullPool)
        self._writers = ThreadPoolExecutor(1 if self.is_sqlite else WRITERS, "database-write")
        self._readers = ThreadPoolExecutor(READERS, "database-read")
        self.availability = Availability(self._reach)
        self.on_done: list[Callable[[str, float], None]] = []
        """Called after each `read` and `write` with the seconds it took, waiting for a thread included."""

    async def read(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        began = time.perf_counter()
        try:
            return await self._read(work, *args, **kwargs)
        finally:
            self._report("read", began)

    async def _read(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.is_sqlite:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._readers, lambda: self.read_now(work, *args, **kwargs))

        def attempt() -> T:
            with open_connection(self._reading) as connection, connection.begin():
                return work(connection, *args, **kwargs)

        return await self._repeat(self._readers, attempt)

    async def write(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """All of it is committed when this returns, and nothing if it raises; with DatabaseAwayError, it is
        unknown which."""
        began = time.perf_counter()
        try:
            return await self._write(work, *args, **kwargs)
        finally:
            self._report("write", began)

    async def _write(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.is_sqlite:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._writers, lambda: self.write_now(work, *args, **kwargs))
        once = SingleCommit(self._writing, lambda connection: work(connection, *args, **kwargs))
        return await self._repeat(self._writers, once)

    def _report(self, kind: str, began: float) -> None:
        for notify in self.on_done:
            notify(kind, time.perf_counter() - began)

    def count_waiting(self) -> int:
        """Reads and writes that no thread has begun."""
        return sum(threads._work_queue.qsize() for threads in (self._readers, self._writers))

    def count_in_use(self) -> int:
        return sum(count_checked_out(engine) for engine in {self._writing, self._reading})

    @property
    def pool_size(self) -> int:
        return READERS + (1 if self.is_sqlite else WRITERS)

    def read_now(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._reading.begin() as connection:
            return work(connection, *args, **kwargs)

    def write_now(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._writing.begin() as connection:
            return work(connection, *args, **kwargs)

    async def _repeat(self, threads: ThreadPoolExecutor, attempt: Callable[[], T]) -> T:
        """Run an attempt in a thread; again when its connection was lost, once the database is back."""
        loop = asyncio.get_running_loop()
        until: float | None = None
        while True:
            try:
                return await self._finish(loop.run_in_executor(threads, attempt))
            except LostConnectionError:
                until = until or time.monotonic() + PATIENCE_SECONDS
                await self.availability.wait(until - time.monotonic())

    async def _finish(self, working: asyncio.Future[T]) -> T:
        """Wait for an attempt, however long it takes, as long as the database answers others."""
        try:
            while not working.done():
                await asyncio.wait({working}, timeout=SILENT_SECONDS)
                if not working.done() and await self.availability.look() is not None:
                    await self.availability.wait(PATIENCE_SECONDS)
            return working.result()
        finally:
            working.cancel()  # an attempt that no thread has begun ends with its caller

    def _reach(self) -> None:
        """Raises if the database does not answer."""
        with self._looking.connect() as connection:
            connection.execute(text("SELECT 1"))

    def prepare_space(self) -> None:
        """Let a SQLite file of an earlier version shrink."""
        if self.is_sqlite:
            self._with_file(space.prepare)

    async def give_back_space(self) -> None:
        """Give the space of deleted rows back, in small steps between other writes."""
        loop = asyncio.get_running_loop()
        while self.is_sqlite and await loop.run_in_executor(
            self._writers, lambda: self._with_file(space.shrink)
        ):
            pass

    def _with_file(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run something on SQLite's own connection that writes, outside transactions."""
        raw = self._writing.raw_connection()
        try:
            connection: Any = raw.driver_connection
            return work(connection)
        finally:
            raw.close()

    def sync_every_write(self) -> None:
        """From now on, commits survive a power failure; SQLite is faster without that."""
        if self.is_sqlite:
            self._with_file(lambda connection: connection.execute("PRAGMA synchronous = FULL"))

    def connect_alone(self) -> Connection:
        """A connection for the caller to keep, without a transaction."""
        return self._writing.connect().execution_options(isolation_level="AUTOCOMMIT")

    def close(self) -> None:
        self.availability.close()
        self._writers.shutdown()
        self._readers.shutdown()
        for engine in {self._writing, self._reading, self._looking}:
            engine.dispose()

    def _engine(self, *, writes: bool) -> Engine:
        if not self.is_sqlite:
            return self._postgres(writes=writes, pool_size=WRITERS if writes else READERS)
        engine = create_engine(
            self.url,
            pool_size=1 if writes else READERS,
            connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS},
        )
        begin = "BEGIN IMMEDIATE" if writes else "BEGIN"

        @event.listens_for(engine, "connect")
        def set_up(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
            connection.isolation_level = None  # we begin transactions explicitly
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")

        @event.listens_for(engine, "begin")
        def begin_transaction(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

        return engine

    def _postgres(self, *, writes: bool = False, **pool: Any) -> Engine:
        # An outage is logged once, by Availability; psycopg would add a line for each lost connection.
        logging.getLogger("psycopg").setLevel(logging.ERROR)
        engine = create_engine(self.url, connect_args=self._timeouts, **pool)

        if writes:
            event.listen(engine, "connect", limit_idle_transactions)
        return engine

    @property
    def _timeouts(self) -> dict[str, int]:
        return {name: value for name, value in POSTGRES_TIMEOUTS.items() if name not in self.url.query}

    async def connect_to_listen(self) -> psycopg.AsyncConnection[Any]:
        """A connection to PostgreSQL beside the others, to listen for notifications."""
        _, where = self._writing.dialect.create_connect_args(self.url)
        return await psycopg.AsyncConnection.connect(**{**self._timeouts, **where}, autocommit=True)


def limit_idle_transactions(connection: psycopg.Connection[Any], _: ConnectionPoolEntry) -> None:
    connection.autocommit = True
    connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_MILLISECONDS}")
    connection.autocommit = False


def parse_database_url(url: str) -> URL:
    """The address, with the driver that Proctor installs."""
    try:
        made = make_url(url)
        backend = made.get_backend_name()
        if backend == "sqlite":
            return made.set(drivername="sqlite+pysqlite")
        if backend in ("postgresql", "postgres"):
            return made.set(drivername="postgresql+psycopg")
    except (ArgumentError, NoSuchModuleError, ValueError):  # whose texts may hold a part of the password
        raise ConfigError(
            "The address of the database cannot be read; write sqlite:///FILE or "
            "postgresql://USER:PASSWORD@HOST:PORT/NAME, with %40 for an @ in the password."
        ) from None
    raise ConfigError(f"--database takes sqlite:///FILE or postgresql://HOST/NAME, not {backend!r}.")


def count_checked_out(engine: Engine) -> int:
    pool = engine.pool
    return pool.checkedout() if isinstance(pool, QueuePool) else 0


def own(file: Path) -> None:
    """Make a SQLite file private to this user; if that fails, SQLite reports what is wrong with the path."""
    try:
        claim_database(file)
    except OSError as error:
        log.debug("could not make %s private: %s", file, error)


def sqlite_url(file: Path) -> str:
    return f"sqlite:///{file}"
