"""Follow a run on a server: every event once and in order, whatever happens to the connection.

    async for event in follow(server, "run-1a2b3c4d5e"):
        ...

Events come as a stream. When that breaks it is reopened after the last number that was seen; when it keeps
breaking, events are polled instead, and the stream is tried again later. A server that is unreachable is
waited for without end, and `say` gets a notice now and then. Only a refusal ends it early. Knows nothing of
what the events mean.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import aiohttp
import msgspec

from proctor.api.runs import Events, RunEvent
from proctor.client.connection import ServerConnection, ServerError, decode_answer
from proctor.client.runs import run_path

NO_CONNECTION = (aiohttp.ClientError, OSError, TimeoutError)


class FollowTimings(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds."""

    poll: float = 10.0
    """Between two polls, while the stream does not work."""
    silence: float = 60.0
    """A stream without any keep-alive for this long is broken."""
    first_pause: float = 0.25
    longest_pause: float = 8.0
    streams: int = 3
    """Streams that break without an event, one after the other, before events are polled instead."""
    polls: int = 6
    """Polls before the stream is tried again."""
    notify_after: float = 5.0
    """A shorter absence of the server is not reported."""
    notify_every: float = 60.0


class BrokenStreamError(Exception):
    """The stream ended before the run did, or has a gap."""


async def follow(
    server: ServerConnection,
    run_id: str,
    after: int = 0,
    *,
    patience: FollowTimings | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[RunEvent]:
    """The events after a number, to the last."""
    follower = Follower(server, run_id, after, patience or FollowTimings(), notify)
    async for event in follower.events():
        yield event


class Follower:
    """A reader, and its position."""

    def __init__(
        self,
        server: ServerConnection,
        run_id: str,
        after: int,
        patience: FollowTimings,
        notify: Callable[[str], None],
    ) -> None:
        self.server = server
        self.path = f"{run_path(run_id)}/events"
        self.seen = after
        self.patience = patience
        self.ended = False
        self._absence = OutageReporter(server.context.url, patience, notify)

    async def events(self) -> AsyncIterator[RunEvent]:
        failures = 0
        while not self.ended:
            before = self.seen
            polling = failures >= self.patience.streams
            try:
                async for event in self._poll() if polling else self._stream():
                    yield event
            except (*NO_CONNECTION, BrokenStreamError) as error:
                reason = str(error) or type(error).__name__
            except ServerError as error:
                if not error.is_transient:
                    raise
                reason = str(error)
            else:
                failures = 0  # polled often enough, or up to date: back to the stream
                continue
            failures = 1 if self.seen > before else failures + 1
            self._absence.report_outage(reason)
            pause = self.patience.first_pause * 2 ** min(failures - 1, 16)
            await asyncio.sleep(min(pause, self.patience.longest_pause))

    async def _stream(self) -> AsyncIterator[RunEvent]:
        async with self.server.open(
            "GET",
            f"{self.path}/stream",
            query={"after": self.seen},
            headers={"accept": "text/event-stream"},
            seconds=self.patience.silence,
        ) as answer:
            async for kind, data in iterate_sse(answer.content):
                self._absence.over()
                if kind == "end":
                    self.ended = True
                    return
                if data:
                    event = decode_event(data)
                    if event.seq > self.seen + 1:
                        raise BrokenStreamError(f"event {self.seen + 1} is missing")
                    if event.seq > self.seen:
                        self.seen = event.seq
                        yield event
        raise BrokenStreamError("the stream ended before the run")

    async def _poll(self) -> AsyncIterator[RunEvent]:
        """Poll a few times; the server's answer is complete, so nothing can be missing."""
        for turn in range(self.patience.polls):
            if turn:
                await asyncio.sleep(self.patience.poll)
            behind = True
            while behind:
                news = await self._news()
                self._absence.over()
                for event in news.items:
                    if event.seq > self.seen:
                        self.seen = event.seq
                        yield event
                if news.ended:
                    self.ended = True
                    return
                behind = bool(news.items) and self.seen < news.last_seq

    async def _news(self) -> Events:
        async with self.server.open("GET", self.path, query={"after": self.seen}) as answer:
            return decode_answer(await answer.read(), Events)


class OutageReporter:
    """Reports an unreachable server, after a while, and not too often."""

    def __init__(self, url: str, patience: FollowTimings, notify: Callable[[str], None]) -> None:
        self.url = url
        self.patience = patience
        self.notify = notify
        self._since: float | None = None
        self._notified_at: float | None = None

    def report_outage(self, reason: str) -> None:
        now = time.monotonic()
        if self._since is None:
            self._since = now
        away = now - self._since
        due = now - self._notified_at >= self.patience.notify_every if self._notified_at else True
        if away >= self.patience.notify_after and due:
            self._notified_at = now
            self.notify(f"{self.url} does not answer ({reason}); waiting for it since {away:.0f} s.")

    def over(self) -> None:
        if self._notified_at is not None:
            self.notify(f"{self.url} is back.")
        self._since = self._notified_at = None


async def iterate_sse(content: aiohttp.StreamReader) -> AsyncIterator[tuple[str, bytes]]:
    """Kind and data of every server-sent event; a comment is an event without either."""
    kind, data = "", b""
    pending = b""
    async for chunk in content.iter_any():
        *lines, pending = (pending + chunk).split(b"\n")
        for raw in lines:
            line = raw.removesuffix(b"\r")
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if not line:
                yield kind, data
                kind, data = "", b""
            elif name == b"event":
                kind = value.decode(errors="replace")
            elif name == b"data":
                data = data + b"\n" + value if data else value
            elif not name:
                yield "", b""


def decode_event(data: bytes) -> RunEvent:
    try:
        return msgspec.json.decode(data, type=RunEvent)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BrokenStreamError(f"an event is malformed: {error}") from error
