"""Replies that were paid for, kept on disk so that the same evaluation need not pay for them again.

A reply is found by everything that decides it: the endpoint, the messages, tools and sampling, the task, the
number of the rollout, and how often the rollout asked the same before. So rollouts of one task stay
different samples, and the replay of a run is that run. One SQLite file serves any number of processes at
once; what was written survives a crash. If it breaks, the run continues without it. Knows nothing of scores.
"""

from __future__ import annotations

import hashlib
import queue
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from proctor.config.endpoints import Endpoint
from proctor.config.headers import drop_secrets
from proctor.contracts import Model
from proctor.errors import ConfigError
from proctor.rollout import RolloutKey
from proctor.support.logs import log
from proctor.task import canonical_bytes
from proctor.trace import ModelCall, Reply

FILE = "replies.sqlite"
VERSION = 1
BUSY_SECONDS = 5.0
"""How long a writer waits for writers in other processes. Readers never wait."""
SNAPSHOT_SECONDS = 0.1
"""How long replies are read from one state of the file. While it lasts, the file's log cannot shrink."""
WRITES_AT_ONCE = 200
CLOSING_SECONDS = 10.0
SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply BLOB NOT NULL) WITHOUT ROWID"

_decode = msgspec.json.Decoder(Reply).decode
_encode = msgspec.json.Encoder(enc_hook=str).encode


def locate_cache(setting: str | bool) -> Path | None:
    """The folder that the setting `cache` means; None for no cache."""
    if setting is False or setting == "":
        return None
    if setting is True or setting == "default":
        return platformdirs.user_cache_path("proctor") / "replies"
    return Path(str(setting)).expanduser()


def open_cache(setting: str | bool, endpoint: Endpoint) -> ReplyCache | None:
    folder = locate_cache(setting)
    return None if folder is None else ReplyCache(folder, endpoint)


def check_cache(setting: str | bool, endpoint: Endpoint) -> None:
    """Raise before the first model call if the cache cannot be used."""
    cache = open_cache(setting, endpoint)
    if cache is not None:
        cache.close()


class ReplyCache:
    """The cache in a folder, for evaluations of one endpoint."""

    def __init__(self, folder: Path, endpoint: Endpoint) -> None:
        self.folder = folder
        self.endpoint = describe_endpoint(endpoint)
        self._broken = False
        self._snapshot_ends = 0.0
        self._waiting: queue.SimpleQueue[tuple[bytes, bytes] | None] = queue.SimpleQueue()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._reader = connect(folder)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"The reply cache in {folder} cannot be used: {error}. Name another folder with --cache DIR, "
                "or leave it out."
            ) from error
        self._writer = threading.Thread(target=self._write, name="proctor-cache", daemon=True)
        self._writer.start()

    def for_rollout(self, key: RolloutKey) -> CachedReplies:
        return CachedReplies(self, key)

    def read(self, key: bytes) -> Reply | None:
        if self._broken:
            return None
        try:
            self._renew_snapshot()
            row = self._reader.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            if row is None:
                self._end_snapshot()  # asking the model takes longer than a snapshot should last
                return None
            return _decode(row[0])
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            self._give_up(error)
            return None

    def _renew_snapshot(self) -> None:
        """Read from one state of the file for a while: to find the state anew costs more than the reading.
        What others write meanwhile is seen a moment later."""
        now = time.monotonic()
        if now >= self._snapshot_ends:
            self._end_snapshot()
            self._reader.execute("BEGIN")
            self._snapshot_ends = now + SNAPSHOT_SECONDS

    def _end_snapshot(self) -> None:
        self._snapshot_ends = 0.0
        if self._reader.in_transaction:
            self._reader.execute("COMMIT")

    def write(self, key: bytes, reply: Reply) -> None:
        if not self._broken:
            self._waiting.put((key, _encode(reply)))

    def close(self) -> None:
        """Wait until what was answered is written."""
        self._waiting.put(None)
        self._writer.join(CLOSING_SECONDS)
        with suppress(sqlite3.Error):
            self._reader.close()

    def _write(self) -> None:
        """Write what waits, in one transaction for all that came together."""
        try:
            connection = connect(self.folder)
            while (batch := self._take_batch()) is not None:
                with connection:
                    connection.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?)", batch)
            connection.close()
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def _take_batch(self) -> list[tuple[bytes, bytes]] | None:
        """The next replies to write, once there are any; None after the last."""
        first = self._waiting.get()
        if first is None:
            return None
        batch = [first]
        while len(batch) < WRITES_AT_ONCE:
            try:
                more = self._waiting.get_nowait()
            except queue.Empty:
                break
            if more is None:
                self._waiting.put(None)
                break
            batch.append(more)
        return batch

    def _give_up(self, error: Exception) -> None:
        if not self._broken:
            self._broken = True
            log.warning(
                "The reply cache in %s failed (%s); the run continues without it.", self.folder, error
            )


class CachedReplies:
    """The cache as one attempt at a rollout sees it."""

    def __init__(self, cache: ReplyCache, key: RolloutKey) -> None:
        self._cache = cache
        self._key = key
        self._asked: dict[bytes, int] = {}
        """How often each request was sent before."""
        self._open: dict[int, bytes] = {}
        """The keys of calls that are being answered, by the call's id."""

    def find(self, call: ModelCall, model: Model) -> Reply | None:
        question = self._hash_question(call, model)
        ordinal = self._asked.get(question, 0)
        self._asked[question] = ordinal + 1
        key = hashlib.sha256(question + ordinal.to_bytes(4)).digest()
        reply = self._cache.read(key)
        if reply is None:
            self._open[id(call)] = key
        return reply

    def keep(self, call: ModelCall, reply: Reply) -> None:
        key = self._open.pop(id(call), None)
        if key is not None:
            self._cache.write(key, reply)

    def _hash_question(self, call: ModelCall, model: Model) -> bytes:
        where = self._cache.endpoint if call.role == "agent" else describe_model(model)
        asked = (VERSION, where, self._key, call.role, call.messages, call.tools, call.sampling)
        return hashlib.sha256(canonical_bytes(asked)).digest()


def connect(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / FILE, timeout=BUSY_SECONDS, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(SCHEMA)
    return connection


def describe_endpoint(endpoint: Endpoint) -> tuple[Any, ...]:
    """What tells endpoints apart that may answer differently; keys do not count."""
    headers = sorted(drop_secrets(endpoint.headers).items())
    return (endpoint.model, endpoint.address, endpoint.client_type, headers)


def describe_model(model: Model) -> tuple[Any, ...]:
    """The same for a judge's model, which may have no endpoint."""
    inner: Any = model
    while not hasattr(inner, "endpoint") and hasattr(inner, "model"):
        inner = inner.model
    endpoint = getattr(inner, "endpoint", None)
    if isinstance(endpoint, Endpoint):
        return describe_endpoint(endpoint)
    return (model.name, type(model).__qualname__)
