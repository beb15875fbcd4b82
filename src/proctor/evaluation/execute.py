"""One run: its folder, its tally and its engine, from the first owed rollout to the last line of metadata.

Knows nothing of where the settings came from or who is watching.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.config.prices import find_price
from proctor.contracts import HttpEndpointOpener, Listener, get_pass_threshold
from proctor.endpoints.endpoint import SharedEndpoint
from proctor.engine.limits import Throttle
from proctor.engine.plan import Plan
from proctor.engine.player import Player
from proctor.engine.runner import Runner, UnitPlayer
from proctor.engine.seat import RunContext
from proctor.errors import ConfigError, EnvError, ProctorError, StoreError
from proctor.evaluation.prepare import Prepared
from proctor.evaluation.resume import (
    build_task_check,
    choose_new_folder,
    folder_to_resume,
    list_earlier_attempts,
    warn_of_changes,
    warn_of_timeout_change,
)
from proctor.events import Event, RunEnded, RunStarted
from proctor.gateway.gateway import RolloutGateway
from proctor.report import RolloutLine, Summary, Tally, rollout_line
from proctor.rollout import Rollout, RolloutKey
from proctor.run import Run, RunStatus, new_run_id
from proctor.store import metadata
from proctor.store.folder import RunFolder, StoredRollouts
from proctor.store.rows import encode_row
from proctor.support.logs import RunLog, log
from proctor.task import Task
from proctor.trace import ToolSpec
from proctor.workers.pool import WorkerPool
from proctor.workers.wire import StartWorker

if TYPE_CHECKING:
    from proctor.workers.pool import WorkerPool

METADATA_EVERY_SECONDS = 5.0
LOG = "run.log"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluation came to."""

    run: Run
    summary: Summary
    folder: Path
    notable: Mapping[RolloutKey, str]
    """Rollouts worth a look, and why."""
    rollouts: Sequence[Rollout] = ()
    """All of them in task order, where they were asked to be kept in memory."""

    def __iter__(self) -> Iterator[Rollout]:
        return iter(self.rollouts)


class Control:
    """Lets somebody outside watch a run and stop it."""

    def __init__(self) -> None:
        self.stopping = False
        self.runner: Runner | None = None
        self.player: UnitPlayer | None = None
        """Who will play; workers may still be getting ready."""
        self.pace: Throttle | None = None
        """How fast the endpoint lets us ask."""
        self.tally: Tally | None = None
        """All that is counted so far, with what was finished before a resume."""

        self.playing: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Start nothing more; what is in flight is played to its end."""
        self.stopping = True
        if self.player is not None:
            self.player.stop()
        if self.runner is not None:
            self.runner.stop()

    def leave(self) -> None:
        """Drop what is in flight as well. What was finished is kept."""
        self.stop()
        if self.playing is not None:
            self.playing.cancel()


class Execution:
    """One run: its folder, its tally, and its engine."""

    def __init__(
        self,
        prepared: Prepared,
        service: SharedEndpoint,
        listeners: Sequence[Listener],
        control: Control,
        resume: str | None,
    ) -> None:
        self.prepared = prepared
        self.service = service
        self.listeners = list(listeners)
        self.control = control
        self.tally = control.tally = Tally(get_pass_threshold(prepared.environment))
        self.tasks = read_tasks(prepared)
        self.plan = Plan(
            tasks=self.tasks,
            rollouts_per_task=prepared.config.rollouts_per_example,
            whole_groups=prepared.grouped,
        )
        if self.plan.planned == 0:
            raise ConfigError(self._nothing_to_do())
        self.run_ = Run(
            id=new_run_id(),
            env_id=prepared.name,
            model=prepared.endpoint.model,
            label=prepared.config.label,
            status="running",
            started_at=time.time(),
        )
        self._metadata: dict[str, Any] = {}
        self._rows: dict[RolloutKey, tuple[bytes, RolloutLine]] = {}
        """Of rollouts that ended and are not kept yet."""
        self.path = self._folder(resume)
        self.folder = RunFolder(self.path)
        self.workers: WorkerPool | None = None
        self._saved_at = 0.0

    def _folder(self, resume: str | None) -> Path:
        found = folder_to_resume(self.prepared, resume, self.plan.planned) if resume else None
        if found is None:
            return choose_new_folder(self.prepared, self.run_.id)
        path, self._metadata = found
        warn_of_changes(self.prepared, self._metadata)
        self.run_ = msgspec.structs.replace(self.run_, id=path.resolve().name)
        return path

    async def run(self) -> Result:
        try:
            with RunLog(self.path / LOG):
                await self._play()
        finally:
            self.folder.close()
        summary = self.summary()
        return Result(run=self.run_, summary=summary, folder=self.path, notable=self.tally.notable.keys())

    async def _play(self) -> None:
        stored = self._load()
        config = self.prepared.config
        self._metadata = metadata.opening_metadata(
            self.run_, config, self.prepared.endpoint, self.prepared.provenance, self.prepared.selection()
        )
        self._say_tools(self.folder.tools)
        self._save()
        self.emit(RunStarted(self.run_, self.plan.planned, len(stored.settled), str(self.path)))
        try:
            async with self._player() as player:
                await self._play_with(player)
        except BaseException as error:
            if self.run_.status == "running":  # the workers could not be started
                status: RunStatus = "failed" if isinstance(error, ProctorError) else "stopped"
                self._end(status, str(error) or type(error).__name__)
            raise

    async def _play_with(self, player: UnitPlayer) -> None:
        runner = Runner(player, self.emit, self.keep, self.ended)
        self.control.runner = runner
        if self.control.stopping:
            runner.stop()
        status: RunStatus = "failed"
        note = ""
        try:
            await self._play_out(runner)
            status = "stopped" if runner.stopping else "finished"
        except (StoreError, EnvError) as error:  # the disk, or the dataset, gave out on the way
            note = str(error)
            if not self.plan.counted:
                raise
        except ProctorError as error:
            note = str(error)
            raise
        except BaseException as error:
            status, note = "stopped", type(error).__name__
            raise
        finally:
            self._end(status, note)

    @asynccontextmanager
    async def _player(self) -> AsyncIterator[UnitPlayer]:
        """Who plays: this process, or workers."""
        prepared, rules = self.prepared, self.prepared.rules()
        count = prepared.workers()
        if count == 1 or prepared.found is None:
            doors = RolloutGateway(self.service.model.name)
            try:
                yield Player(prepared.environment, self._table(doors), rules, self.emit, self.service.budget)
            finally:
                await doors.close()
            return

        start = StartWorker(
            number=0,
            found=prepared.found,
            config=prepared.config,
            endpoint=prepared.endpoint,
            rules=rules,
            tools=self.folder.tools,
        )
        self.workers = self.control.player = pool = WorkerPool(
            start,
            count,
            traits=prepared.environment.traits,
            folder=self.path,
            emit=self.emit,
            budget=self.service.budget,
            sharers=prepared.sharers,
        )
        if self.control.stopping:
            pool.stop()
        async with pool:
            yield pool

    def _table(self, doors: HttpEndpointOpener) -> RunContext:
        config = self.prepared.config
        self.control.pace = self.service.pace
        return RunContext(
            self.service.model,
            sampling=config.sampling(),
            headers_from_state=config.headers_from_state,
            emit=self.emit,
            pace=self.service.pace,
            agent=self.prepared.agent,
            doors=doors,
        )

    async def _play_out(self, runner: Runner) -> None:
        """Play the plan, or as much of it as until somebody leaves."""
        self.control.playing = playing = asyncio.ensure_future(runner.run(self.plan))
        try:
            await asyncio.wait({playing}) if not playing.done() else None
        except asyncio.CancelledError:
            playing.cancel()
            raise
        if not playing.cancelled():
            playing.result()
            if not self.plan.counted and not runner.stopping:
                raise ConfigError(self._nothing_to_do())

    def ended(self, rollout: Rollout) -> None:
        """Write the row down while everything in it is still at hand; a moment later costs twice as much."""
        written = None if self.workers is None else self.workers.rows.pop(rollout.key, None)
        try:
            self._share_tools(rollout)
        finally:
            self._rows[rollout.key] = written or (
                encode_row(rollout, self.folder.tools),
                rollout_line(rollout),
            )

    def keep(self, rollouts: Sequence[Rollout]) -> None:
        """Make rollouts durable, then count them."""
        rows = [self._rows.pop(rollout.key) for rollout in rollouts if rollout.key in self._rows]
        try:
            self.folder.append([row for row, _ in rows])
        finally:
            for _, line in rows:
                self.tally.add(line)
        if time.monotonic() - self._saved_at > METADATA_EVERY_SECONDS:
            self._save()

    def _share_tools(self, rollout: Rollout) -> None:
        """Say in the metadata what tools there are, before the first row leaves them out."""
        calls = rollout.trace.calls
        tools = calls[0].tools if calls else ()
        if tools and not self.folder.tools:
            self._say_tools(tools)
            self._save()
            self.folder.tools = tools
            if self.workers is not None:
                self.workers.share(tools)

    def _say_tools(self, tools: Sequence[ToolSpec]) -> None:
        self._metadata["tools"] = msgspec.to_builtins(list(tools)) or None

    def emit(self, event: Event) -> None:
        """Tell every listener; one that fails is told no more, and nobody else suffers."""
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:
                log.exception("a listener failed and is left out from here on")
                self.listeners = [other for other in self.listeners if other is not listener]

    def planned(self) -> int | None:
        if self.plan.planned is not None or self.run_.status != "finished":
            return self.plan.planned
        return self.plan.counted * self.plan.rollouts_per_task

    def summary(self) -> Summary:
        endpoint = self.prepared.endpoint
        prices = {name: price for name in self.tally.other_usage if (price := find_price(name)) is not None}
        prices.pop(endpoint.model, None)
        if (own := endpoint.tariff) is not None:
            prices[endpoint.model] = own
        return self.tally.summary(
            planned=self.planned(),
            rollouts_per_task=self.plan.rollouts_per_task,
            seed=self.prepared.config.seed,
            model=endpoint.model,
            prices=prices,
        )

    def _end(self, status: RunStatus, note: str) -> None:
        self.run_ = msgspec.structs.replace(self.run_, status=status, ended_at=time.time(), note=note)
        self._metadata.update(metadata.closing_metadata(self.summary()))
        try:
            self._save()
        except StoreError as error:
            log.error("%s", error)
        self.emit(RunEnded(self.run_))

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        settled = self.tally.scored + self.tally.outcomes["excluded"]
        self._metadata.update(metadata.progress_metadata(self.run_, settled, self.planned()))
        self.folder.save_metadata(self._metadata)

    def _nothing_to_do(self) -> str:
        return f"{self.prepared.config.env_id} has no tasks; there is nothing to evaluate."

    def _load(self) -> StoredRollouts:
        """What the folder holds already; shrinks the plan by it."""
        size = self.plan.rollouts_per_task if self.prepared.grouped else 0
        stored = self.folder.load(self.tally.add, owed_whole=size)
        warn_of_timeout_change(self.prepared, self._metadata, self.tally.timed_out)
        self.folder.tools = msgspec.convert(self._metadata.get("tools") or (), tuple[ToolSpec, ...])
        planned = self.plan.planned
        if planned is not None and len(stored.settled) > planned:
            raise ConfigError(
                f"{self.path} cannot be resumed: it holds {len(stored.settled):,} finished rollouts, and "
                f"the environment now has tasks for {planned:,} only."
            )
        if stored.settled or stored.owed:
            self.plan.finished = stored.settled
            self.plan.earlier = {
                key: list_earlier_attempts(line) for key, line in stored.owed.items() if line.error
            }
            self.plan.on_task = build_task_check(stored, self.path)
        if stored.faults:
            log.warning(
                "%d lines of %s could not be read; those rollouts are played again.", stored.faults, self.path
            )
        return stored


def read_tasks(prepared: Prepared) -> Iterable[Task]:
    """The tasks to evaluate; whatever the environment raises over them becomes one sentence."""
    try:
        return prepared.tasks()
    except ProctorError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{prepared.config.env_id}: reading the tasks failed: {type(error).__name__}: {error}"
        ) from error
