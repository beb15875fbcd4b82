"""A host: asks a server for runs, and plays each in a place of its own.

It holds a run by a lease that it renews, passes on a stop, and tells of a process that died. A server that is
away for a while costs nothing: the run goes on, and is told of later. Knows nothing of what is played.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from proctor.api.runs import Cause, CauseCode, ClaimRequest, Lease, LeftOver, LogText, Lost, Order, Report
from proctor.client.connection import Connection, ServerError
from proctor.client.contexts import Context
from proctor.errors import InstallError, ProctorError
from proctor.hosting.checks import Checker, check_one
from proctor.hosting.holding import held, remove_unheld
from proctor.hosting.host_order import HostSettings
from proctor.hosting.inside.order import RUN, TOKEN, InsideOrder, write_order
from proctor.hosting.outward import outward
from proctor.hosting.relay import relay
from proctor.hosting.venvs import Venv, Venvs
from proctor.hosting.walls import Ended, Running, RunSpec, launch, remove_folder
from proctor.hosting.wheels import fetch_wheel
from proctor.logs import log

IDLE_SECONDS = 0.5
AWAY_SECONDS = 600.0
"""How long a server may be away before its runs are left to another host."""
GRACE_SECONDS = 20.0
"""How long a run may take to end that was stopped."""
LEAVING_SECONDS = 5.0
"""The same, when it is the host that ends."""
HOLD_SECONDS = 60.0
"""How long an earlier attempt on this machine may take to end; its host may not know yet that it is over."""
TELL_TRIES, TELL_PAUSE_SECONDS = 10, 1.0
TIDY_SECONDS = 60.0
FIRST_BATCH_INSIDE = 10_000
"""Smaller numbers are for the host's own reports of an attempt."""
OLD_DAYS = 7
INSIDE = "proctor.hosting.inside"
SHUT_DOWN = "The host that played the run was shut down."
STOPPED = "The run was stopped before it began."
REASONS = {
    "memory": "It used more memory than it may.",
    "disk": "It wrote more to disk than it may.",
    "processes": "It started more processes than it may.",
    "cpu": "It used more processor time than it may.",
}


class Host:
    """Plays runs until it is told to end, or, once told to drain, until those it has are over."""

    def __init__(self, context: Context, settings: HostSettings) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.context = context
        self.settings = settings
        self.server = Connection(context, tries=1)
        self.venvs = Venvs(
            settings.data / "venvs", hidden=settings.hidden, allow_no_sandbox=settings.allow_no_sandbox
        )
        self.wheels = settings.data / "wheels"
        self.draining = False
        self._away = False
        self._playing: dict[str, asyncio.Task[None]] = {}
        self._taking: asyncio.Future[bool] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._tidying: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()

    async def work(self) -> None:
        """Take runs as long as there is room; returns when drained."""
        settings = self.settings
        settings.work.mkdir(parents=True, exist_ok=True, mode=0o711)
        self._tidying = asyncio.create_task(self._tidy_on())
        while not self.draining:
            took = len(self._playing) < settings.at_once and await self._take_whole()
            self._check_if_idle()
            if not took:
                await self._rest()
        if self._playing:
            await asyncio.wait(self._playing.values())

    def drain(self) -> None:
        """Take nothing more."""
        self.draining = True
        self._wake.set()

    async def close(self) -> None:
        """End what is played; other hosts go on with it."""
        self.drain()
        if self._taking is not None:
            await asyncio.wait({self._taking}, timeout=LEAVING_SECONDS)
        beside = [task for task in (self._checking, self._tidying) if task is not None]
        tasks = [*self._playing.values(), *beside]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.server.close()

    async def _rest(self) -> None:
        self._wake.clear()
        try:
            await asyncio.wait_for(self._wake.wait(), IDLE_SECONDS)
        except TimeoutError:
            return

    async def _take_whole(self) -> bool:
        """A run that the server gave us is ours, even if we are told to end before its answer is here."""
        self._taking = asyncio.ensure_future(self._take())
        return await asyncio.shield(self._taking)

    async def _take(self) -> bool:
        try:
            raw = await self.server.ask(
                "POST", "/hosts/claims", body=msgspec.json.encode(ClaimRequest(self.name))
            )
        except ServerError as error:
            if not error.is_passing:
                raise
            self._hears(error)
            return False
        self._hears(None)
        if not raw:
            return False
        order = msgspec.json.decode(raw, type=Order)
        task = asyncio.create_task(self._play(order))
        self._playing[order.run_id] = task
        task.add_done_callback(lambda _: self._left(order.run_id))
        return True

    def _hears(self, error: ServerError | None) -> None:
        """Say once that the server is away, and once that it is back."""
        if self._away == (error is not None):
            return
        self._away = error is not None
        if error is not None:
            log.warning("%s It is asked again until it does.", error)
        else:
            log.info("%s answers again", self.context.url)

    def _left(self, run_id: str) -> None:
        self._playing.pop(run_id, None)
        self._wake.set()

    def _check_if_idle(self) -> None:
        """Versions that were pushed are tried out beside the runs, one at a time."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check())

    async def _check(self) -> None:
        settings = self.settings
        checker = Checker(
            host=self.name,
            venvs=self.venvs,
            wheels=self.wheels,
            limits=settings.limits,
            hidden=settings.hidden,
            allow_no_sandbox=settings.allow_no_sandbox,
        )
        try:
            await check_one(self.server, checker)
        except ServerError as error:
            if not error.is_passing:
                log.error("looking for a version to check failed: %s", error)
        except ProctorError as error:
            log.error("checking a version failed: %s", error)

    async def _tidy_on(self) -> None:
        while True:
            try:
                await self._tidy()
            except (ServerError, OSError) as error:
                log.warning("folders of runs could not be tidied up: %s", error)
            await asyncio.sleep(TIDY_SECONDS)

    async def _tidy(self) -> None:
        """Remove folders of runs that nobody goes on with: their hosts were killed before they could."""
        work = self.settings.work
        await asyncio.to_thread(remove_old, work)
        names = {folder.name for folder in work.iterdir()} - self._playing.keys()
        if not names:
            return
        over = await self.server.post("/hosts/leftovers", LeftOver(sorted(names)), LeftOver)
        for name in names.intersection(over.runs):
            await asyncio.to_thread(remove_unheld, work / name)

    async def _play(self, order: Order) -> None:
        try:
            await Playing(self, order).play()
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("playing %s failed", order.run_id)


class Playing:
    """One attempt of one run, from its wheel to its last word."""

    def __init__(self, host: Host, order: Order) -> None:
        self.host = host
        self.order = order
        self.folder = host.settings.work / order.run_id
        self.preparing: asyncio.Future[Venv] | None = None
        self.running: Running | None = None
        self.stopped = False
        """The server asked for the end, or no longer wants to hear of it."""
        self.lost = False
        self._told = Connection(Context(url=host.context.url, token=order.token), tries=2)
        self._batch = 0

    async def play(self) -> None:
        beating = asyncio.create_task(self._beat())
        try:
            await self._play()
        except asyncio.CancelledError:
            await self._finish(self._tell_lost("crashed", SHUT_DOWN, blameless=True, tries=1))
            raise
        except InstallError as error:
            for line in error.last_lines:
                await self._say(line, "ERROR")
            await self._tell_lost("install_failed", str(error), retry=False)
        except ProctorError as error:
            await self._tell_lost("internal", str(error))
        finally:
            beating.cancel()
            await asyncio.wait({beating})
            await self._told.close()

    async def _play(self) -> None:
        order = self.order
        await self._say(f"Attempt {order.attempt} of {order.environment}@{order.version} on {self.host.name}")
        venv = await self._prepared()
        if venv is None:
            await self._tell_lost("crashed", STOPPED, blameless=True)
            return
        async with held(self.folder, HOLD_SECONDS):
            await self._tell_end(await self._played(venv))

    async def _prepared(self) -> Venv | None:
        """None: it was stopped meanwhile."""
        self.preparing = asyncio.ensure_future(self._venv())
        try:
            venv = await self.preparing
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.stopped or (task is not None and task.cancelling()):
                raise
            return None
        return None if self.stopped else venv

    async def _played(self, venv: Venv) -> Ended:
        order, settings = self.order, self.host.settings
        write_order(
            self.folder,
            InsideOrder(
                run_id=order.run_id,
                attempt=order.attempt,
                env_id=order.module,
                model=order.model,
                settings=order.settings,
                first_batch=FIRST_BATCH_INSIDE,
            ),
        )
        async with relay(self.host.context.url) as door, self._outward() as outward:
            spec = RunSpec(
                run_id=order.run_id,
                words=(str(venv.python), "-P", "-m", INSIDE),
                folder=self.folder,
                variables={**venv.variables, **order.variables, TOKEN: order.token, RUN: order.run_id},
                paths=venv.paths,
                hidden=settings.hidden,
                socket=door,
                outward=outward,
                limits=settings.limits,
            )
            self.running = await launch(spec, allow_no_sandbox=settings.allow_no_sandbox)
            try:
                if self.stopped:
                    await self.running.end(GRACE_SECONDS)
                return await self.running.wait()
            except asyncio.CancelledError:
                await self._finish(self.running.end(LEAVING_SECONDS))
                raise

    async def _venv(self) -> Venv:
        order, host = self.order, self.host
        wheel = await fetch_wheel(host.server, order.wheel_sha256, host.wheels)
        lines: list[str] = []
        try:
            return await host.venvs.ready(wheel, order.wheel_name, order.lock, lines.append)
        finally:
            for line in lines:
                await self._say(line)

    @asynccontextmanager
    async def _outward(self) -> AsyncIterator[Path | None]:
        """The way to the internet, if it was granted."""
        if not self.order.permissions.network:
            yield None
            return
        async with outward() as proxy:
            yield proxy

    # What the server hears

    async def _beat(self) -> None:
        """Renew the lease; whatever the server wants of the run comes back."""
        order = self.order
        pause = order.lease_seconds / 4
        heard_at = time.monotonic()
        while True:
            await asyncio.sleep(pause)
            try:
                path = f"/hosts/runs/{order.run_id}/heartbeat"
                raw = await self.host.server.ask(
                    "POST", path, query={"host": self.host.name, "attempt": order.attempt}
                )
                lease = msgspec.json.decode(raw, type=Lease)
                heard_at = time.monotonic()
            except ServerError as error:
                gone = time.monotonic() - heard_at > AWAY_SECONDS
                lease = Lease(lost=gone or not error.is_passing)
            if lease.lost:
                self.lost = True
            if (lease.stop or lease.lost) and not self.stopped:
                self.stopped = True
                if self.running is None:
                    if self.preparing is not None:
                        self.preparing.cancel()
                else:
                    await self.running.end(0.0 if lease.lost else GRACE_SECONDS)

    async def _say(self, text: str, level: str = "INFO") -> None:
        """A line of the host's own in the run's log."""
        self._batch += 1
        report = Report(batch=self._batch, logs=[LogText(level, text, time.time())])
        try:
            await self._told.tell("/runner/reports", report)
        except ServerError as error:
            log.warning("%s: a line of the log did not arrive: %s", self.order.run_id, error)

    async def _tell_end(self, ended: Ended) -> None:
        """The server has had the last word of who ends with 0; of anybody else it hears here."""
        if ended.code == 0:
            await asyncio.to_thread(remove_folder, self.folder)
        elif not self.lost:
            code: CauseCode = "limit_exceeded" if ended.reason else "crashed"
            await self._tell_lost(code, words_of(ended))

    async def _tell_lost(
        self,
        code: CauseCode,
        message: str,
        *,
        retry: bool = True,
        blameless: bool = False,
        tries: int = TELL_TRIES,
    ) -> None:
        """Until it was heard; after a while the server finds out by itself."""
        told = Lost(Cause(code=code, message=message), retry=retry, blameless=blameless)
        path = f"/hosts/runs/{self.order.run_id}/lost"
        for left in reversed(range(tries)):
            try:
                await self.host.server.tell(path, told, host=self.host.name, attempt=self.order.attempt)
                return
            except ServerError as error:
                if not left or not error.is_passing:
                    log.warning("%s: the server did not hear that it was lost: %s", self.order.run_id, error)
                    return
            await asyncio.sleep(TELL_PAUSE_SECONDS)

    async def _finish(self, work: Awaitable[Any]) -> None:
        """What must be done although this was cancelled."""
        await asyncio.shield(asyncio.ensure_future(work))


def words_of(ended: Ended) -> str:
    """How a process ended, in a sentence."""
    if ended.reason:
        return REASONS[ended.reason]
    how = f"was killed by signal {ended.signal}" if ended.signal else f"ended with exit code {ended.code}"
    last = " / ".join(ended.last_words[-3:])
    return f"The process of the run {how}" + (f"; its last words: {last}" if last else ".")


def remove_old(work: Path) -> None:
    """Folders of runs that nobody went on with."""
    too_old = time.time() - OLD_DAYS * 86_400
    for folder in work.iterdir():
        if folder.stat().st_mtime < too_old:
            remove_unheld(folder)
