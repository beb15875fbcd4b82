"""Request a URL every minute while all goes well: if the requests stop, monitoring raises the alarm.

A plain GET of one address, when the first run starts, every minute, and once more when the last run has
finished. When a run fails, is stopped, or the process dies, the beats simply end: no other address is
guessed. Whatever happens to a beat, the run does not notice. Knows nothing of rollouts.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from weakref import WeakValueDictionary

import aiohttp

from proctor.config.api_addresses import is_address, is_on_this_machine
from proctor.errors import ConfigError
from proctor.events import Event, RunEnded, RunStarted
from proctor.support.logs import log

EVERY_SECONDS = 60.0
ANSWER_SECONDS = 10.0

_heartbeats: WeakValueDictionary[str, Heartbeat] = WeakValueDictionary()


def heartbeat_at(url: str) -> Heartbeat:
    """The heartbeat of all runs of this process with the same address."""
    if not is_address(url):
        raise ConfigError(f"--heartbeat-url is {url!r}, and should look like https://host/path.")
    heart = _heartbeats.get(url)
    if heart is None:
        heart = _heartbeats[url] = Heartbeat(url)
    heart.holders += 1
    return heart


class Heartbeat:
    """Sends requests while runs are in progress and none has failed."""

    wants_traces = False

    def __init__(self, url: str, every_seconds: float = EVERY_SECONDS) -> None:
        self.url = url
        self.every_seconds = every_seconds
        self.sent = 0
        self.missed = 0
        """Heartbeats that failed: no connection, no answer in time, or an error status."""
        self.holders = 0
        """Runs that use it; it is closed with the last of them."""
        self._running: set[str] = set()
        self._well = True
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            if self._well and not self._running:
                self._start()
            self._running.add(event.run.id)
        elif isinstance(event, RunEnded):
            self._running.discard(event.run.id)
            self._well = self._well and event.run.status == "finished"
            if not (self._well and self._running):
                self._over.set()

    async def close(self) -> None:
        """Wait for the last beat. Where a run did not finish, there is none."""
        self.holders -= 1
        if self.holders > 0:
            return
        self._well = self._well and not self._running
        self._over.set()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self.missed:
            log.warning("%d of %d heartbeats did not reach %s.", self.missed, self.sent, self.url)

    def _start(self) -> None:
        self._over = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._beat_until(self._over), name="heartbeat")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _beat_until(self, over: asyncio.Event) -> None:
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
            trust_env=not is_on_this_machine(self.url),
        ) as session:
            while not over.is_set():
                due = asyncio.get_running_loop().time() + self.every_seconds
                await self._beat(session)
                await wait_until(over, due)
            if self._well:
                await self._beat(session)

    async def _beat(self, session: aiohttp.ClientSession) -> None:
        self.sent += 1
        try:
            async with session.get(self.url) as response:
                response.raise_for_status()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            self.missed += 1
            if self.missed == 1:
                log.warning(
                    "The heartbeat did not reach %s (%s); the run and its heartbeats continue.",
                    self.url,
                    str(error) or type(error).__name__,
                )


async def wait_until(over: asyncio.Event, due: float) -> None:
    """Wait for the event, at most until a time of the loop's clock."""
    left = due - asyncio.get_running_loop().time()
    if left > 0:
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), left)
