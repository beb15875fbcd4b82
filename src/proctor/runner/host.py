"""A host: claims runs from a server while it has room, checks pushed versions, and cleans up.

A server that is briefly unreachable costs nothing: runs continue, and report later. Knows nothing of where
and how a run is played.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import socket

import msgspec

from proctor.api.common import HOST_KEY_HEADER
from proctor.api.runner import ClaimRequest, RunAssignment
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import Context
from proctor.errors import ProctorError
from proctor.runner.attempt import LEAVING_SECONDS, HostResources
from proctor.runner.checks import Checker, check_one
from proctor.runner.cluster_executor import ClusterExecutor
from proctor.runner.executor import Executor, LocalExecutor
from proctor.runner.fetch import FetchRules
from proctor.runner.host_key import read_host_key
from proctor.runner.host_settings import ClusterSettings, HostSettings
from proctor.runner.launch import has_bubblewrap
from proctor.runner.leftovers import remove_leftovers
from proctor.runner.venvs import Venvs
from proctor.support.logs import log
from proctor.support.metrics import Counter, Gauge, Metric, measure_process
from proctor.support.structured_logs import RUN_ID

IDLE_SECONDS = 0.5
TIDY_SECONDS = 60.0


class RunHost:
    """Plays runs until it is cancelled or, once told to drain, until those it has are over."""

    def __init__(
        self,
        context: Context,
        settings: HostSettings,
        host_key: str = "",
        cluster: ClusterSettings | None = None,
    ) -> None:
        self.settings = settings
        key = host_key or read_host_key(settings.data)
        self.name = name_host(key) if cluster else name_process()
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
        self.executor: Executor = (
            LocalExecutor(self.resources)
            if cluster is None
            else ClusterExecutor(self.name, settings, cluster, self.server)
        )
        self.checks = cluster is None or settings.allow_no_sandbox or has_bubblewrap()
        self.draining = False
        self.claims = Counter("proctor_runner_claims_total", "Runs that this runner was given.")
        self._away = False
        self._playing: dict[tuple[str, int], asyncio.Task[None]] = {}
        """By run and attempt: the next attempt may start here before the last one has ended."""
        self._taking: asyncio.Future[bool] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._tidying: asyncio.Task[None] | None = None
        self._executing: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()

    async def work(self) -> None:
        """Claim runs while there is room; returns when drained."""
        settings = self.settings
        settings.work.mkdir(parents=True, exist_ok=True, mode=0o711)
        self._tidying = asyncio.create_task(self._tidy_on())
        self._executing = asyncio.create_task(self.executor.run())
        while not self.draining:
            if self._executing.done():
                self._executing.result()
            took = self.executor.has_room(len(self._playing)) and await self._take_whole()
            self._check_if_idle()
            if not took:
                await self._rest()
        if self._playing and not self.executor.outlives_host:
            await asyncio.wait(self._playing.values())

    def drain(self) -> None:
        """Claim nothing more."""
        self.draining = True
        self._wake.set()

    @property
    def metrics(self) -> list[Metric]:
        return [
            self.claims,
            Gauge(
                "proctor_runner_slots", "Runs that this process plays at once.", lambda: self.settings.at_once
            ),
            Gauge("proctor_runner_runs", "Runs that it plays now.", lambda: len(self._playing)),
            Gauge("proctor_runner_server_up", "Whether its server answers.", lambda: not self._away),
            *measure_process(),
        ]

    async def close(self) -> None:
        """End all runs, unless they are played elsewhere; other hosts continue them."""
        self.drain()
        if self._taking is not None:
            await asyncio.wait({self._taking}, timeout=LEAVING_SECONDS)
        beside = [task for task in (self._checking, self._tidying, self._executing) if task is not None]
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
        claim = ClaimRequest(self.name, delegate=self.executor.delegates)
        try:
            raw = await self.server.ask("POST", "/hosts/claims", body=msgspec.json.encode(claim))
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
        self.claims.add()
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
        if not self.checks:
            return
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
        await remove_leftovers(self.server, self.settings.work, {run_id for run_id, _ in self._playing})

    async def _play(self, assignment: RunAssignment) -> None:
        RUN_ID.set(assignment.run_id)
        try:
            await self.executor.play(assignment)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("playing %s failed", assignment.run_id)


def name_process() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"


def name_host(key: str) -> str:
    """The same after a restart, on any machine: runs that were placed before still belong to this host."""
    return f"cluster-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
