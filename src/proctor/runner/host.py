"""A host: claims runs from a server while it has room, checks pushed versions, and cleans up.

A server that is briefly unreachable costs nothing: runs continue, and report later. Knows nothing of how a
run is played.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from pathlib import Path

import msgspec

from proctor.api.common import HOST_KEY_HEADER
from proctor.api.runs import ClaimRequest, LeftoverRuns, RunAssignment
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import Context
from proctor.errors import ProctorError
from proctor.runner.attempt import LEAVING_SECONDS, HostAttempt, HostResources
from proctor.runner.checks import Checker, check_one
from proctor.runner.fetch import FetchRules
from proctor.runner.folder_lock import remove_unlocked
from proctor.runner.host_key import read_host_key
from proctor.runner.host_settings import HostSettings
from proctor.runner.venvs import Venvs
from proctor.support.logs import log

IDLE_SECONDS = 0.5
TIDY_SECONDS = 60.0
OLD_DAYS = 7


class RunHost:
    """Plays runs until it is cancelled or, once told to drain, until those it has are over."""

    def __init__(self, context: Context, settings: HostSettings, host_key: str = "") -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.settings = settings
        key = host_key or read_host_key(settings.data)
        self.server = ServerConnection(context, tries=1, headers={HOST_KEY_HEADER: key})
        self.resources = HostResources(
            name=self.name,
            context=context,
            settings=settings,
            server=self.server,
            venvs=Venvs(
                settings.data / "venvs",
                hidden=settings.hidden,
                rules=FetchRules(direct_hosts=settings.direct_hosts),
                allow_no_sandbox=settings.allow_no_sandbox,
            ),
            wheels=settings.data / "wheels",
        )
        self.draining = False
        self._away = False
        self._playing: dict[tuple[str, int], asyncio.Task[None]] = {}
        """By run and attempt: the next attempt may start here before the last one has ended."""
        self._taking: asyncio.Future[bool] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._tidying: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()

    async def work(self) -> None:
        """Claim runs while there is room; returns when drained."""
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
        """Claim nothing more."""
        self.draining = True
        self._wake.set()

    async def close(self) -> None:
        """End all runs; other hosts continue them."""
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
        """A run that the server assigned is ours even if we are cancelled before the answer arrives."""
        self._taking = asyncio.ensure_future(self._take())
        return await asyncio.shield(self._taking)

    async def _take(self) -> bool:
        try:
            raw = await self.server.ask(
                "POST", "/hosts/claims", body=msgspec.json.encode(ClaimRequest(self.name))
            )
        except ServerError as error:
            if not error.is_transient:
                raise
            self._log_reachability(error)
            return False
        self._log_reachability(None)
        if not raw:
            return False
        assignment = msgspec.json.decode(raw, type=RunAssignment)
        task = asyncio.create_task(self._play(assignment))
        key = (assignment.run_id, assignment.attempt)
        self._playing[key] = task
        task.add_done_callback(lambda _: self._forget(key))
        return True

    def _log_reachability(self, error: ServerError | None) -> None:
        """Log once that the server is unreachable, and once that it is back."""
        if self._away == (error is not None):
            return
        self._away = error is not None
        if error is not None:
            log.warning("%s Retrying until it does.", error)
        else:
            log.info("%s answers again", self.server.context.url)

    def _forget(self, key: tuple[str, int]) -> None:
        self._playing.pop(key, None)
        self._wake.set()

    def _check_if_idle(self) -> None:
        """Check pushed versions beside the runs, one at a time."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check())

    async def _check(self) -> None:
        settings = self.settings
        checker = Checker(
            host=self.name,
            venvs=self.resources.venvs,
            wheels=self.resources.wheels,
            limits=settings.limits,
            hidden=settings.hidden,
            allow_no_sandbox=settings.allow_no_sandbox,
        )
        try:
            await check_one(self.server, checker)
        except ServerError as error:
            if not error.is_transient:
                log.error("could not claim a version to check: %s", error)
        except ProctorError as error:
            log.error("could not check a version: %s", error)

    async def _tidy_on(self) -> None:
        while True:
            try:
                await self._tidy()
            except (ServerError, OSError) as error:
                log.warning("could not clean up the folders of runs: %s", error)
            await asyncio.sleep(TIDY_SECONDS)

    async def _tidy(self) -> None:
        """Remove folders of runs that no host will continue: their own host was killed before it could."""
        work = self.settings.work
        await asyncio.to_thread(remove_old_folders, work)
        played = {run_id for run_id, _ in self._playing}
        names = {folder.name for folder in work.iterdir()} - played
        if not names:
            return
        over = await self.server.post("/hosts/leftovers", LeftoverRuns(sorted(names)), LeftoverRuns)
        for name in names.intersection(over.runs):
            await asyncio.to_thread(remove_unlocked, work / name)

    async def _play(self, assignment: RunAssignment) -> None:
        try:
            await HostAttempt(self.resources, assignment).play()
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("playing %s failed", assignment.run_id)


def remove_old_folders(work: Path) -> None:
    """Remove folders of runs that no host has continued for days."""
    too_old = time.time() - OLD_DAYS * 86_400
    for folder in work.iterdir():
        if folder.stat().st_mtime < too_old:
            remove_unlocked(folder)
