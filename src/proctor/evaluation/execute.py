"""One run, from its folder and its plan to its result.

Knows nothing of where the settings came from or who is watching.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from proctor.contracts import Listener, wants_traces
from proctor.endpoints.endpoint import SharedEndpoint
from proctor.endpoints.reply_cache import open_cache
from proctor.engine.limits import Throttle
from proctor.engine.plan import Plan
from proctor.engine.player import Player
from proctor.engine.runner import Runner, UnitPlayer
from proctor.engine.seat import RunContext
from proctor.errors import ConfigError, EnvError, ProctorError, StoreError
from proctor.evaluation.budget import CostBudget
from proctor.evaluation.early_stop import EarlyStop, StoppingWatch, open_watch
from proctor.evaluation.prepare import Prepared
from proctor.evaluation.read_tasks import read_tasks
from proctor.evaluation.record import RunRecord
from proctor.evaluation.resume import (
    FAILED,
    TakenOver,
    build_task_check,
    choose_new_folder,
    folder_to_resume,
    list_earlier_attempts,
    warn_of_changes,
    warn_of_lost_rows,
    warn_of_timeout_change,
)
from proctor.evaluation.reuse import ReusePlan
from proctor.gateway.gateway import RolloutGateway
from proctor.optional_contracts import set_optional_run_folder
from proctor.packages.loading import EnvironmentLocation
from proctor.report.summary import Summary
from proctor.report.tally import Tally
from proctor.rollout import Rollout, RolloutKey
from proctor.run import Run, new_run_id
from proctor.store import metadata
from proctor.store.folder import RunFolder, StoredRollouts, read_line
from proctor.store.frames import Library, build_frame
from proctor.store.recorded import copy_row
from proctor.store.resume_rules import list_accepted_changes
from proctor.support.logs import RunLog, log
from proctor.trace import ToolSpec
from proctor.workers.frames import StartWorker
from proctor.workers.pool import WorkerPool
from proctor.workers.resolve import resolve_backend

LOG = "run.log"
COPIED_AT_ONCE = 500


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an evaluation."""

    run: Run
    summary: Summary
    folder: Path
    notable: Mapping[RolloutKey, str]
    """Rollouts worth a look, and why."""
    taken_over: TakenOver | None = None
    """What a resumed run had before."""
    early_stop: EarlyStop | None = None
    """What its stopping rule saw, if it had one."""
    rollouts: Sequence[Rollout] = ()
    """All of them in task order, if the caller asked to keep them in memory."""

    def __iter__(self) -> Iterator[Rollout]:
        return iter(self.rollouts)

    def frame(self, library: Library = "polars") -> Any:
        """The rollouts as a data frame of Polars, pandas or Arrow, read from the run's folder."""
        return build_frame([self.folder], library)


class Control:
    """Lets a caller watch a run and stop it."""

    def __init__(self) -> None:
        self.stopping = False
        self.runner: Runner | None = None
        self.player: UnitPlayer | None = None
        """What will play; workers may still be starting."""
        self.pace: Throttle | None = None
        """How fast the endpoint lets us send requests."""
        self.tally: Tally | None = None
        """Everything counted so far, rollouts finished before a resume included."""

        self.playing: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Start nothing more; rollouts in flight are played to their end."""
        self.stopping = True
        if self.player is not None:
            self.player.stop()
        if self.runner is not None:
            self.runner.stop()

    def leave(self) -> None:
        """Drop rollouts in flight as well. Finished ones are kept."""
        self.stop()
        if self.playing is not None:
            self.playing.cancel()


class Execution:
    """One run: its folder, its plan, and the player that plays it."""

    def __init__(
        self,
        prepared: Prepared,
        endpoint: SharedEndpoint,
        listeners: Sequence[Listener],
        control: Control,
        resume: str | None,
        accept_changed: Collection[str] = (),
        reuse: ReusePlan | None = None,
    ) -> None:
        self.reuse = reuse
        self.prepared = prepared
        self.endpoint = endpoint
        self.control = control
        control.tally = Tally(prepared.pass_threshold)
        self.plan = Plan(
            tasks=read_tasks(prepared) if reuse is None else reuse.tasks,
            rollouts_per_task=prepared.config.rollouts_per_example,
            whole_groups=prepared.grouped and reuse is None,
        )
        if self.plan.planned == 0:
            raise ConfigError(no_tasks(prepared))
        run = Run(
            id=new_run_id(),
            env_id=prepared.name,
            model=prepared.endpoint.model,
            label=prepared.config.label,
            suite=prepared.suite,
            status="running",
            started_at=time.time(),
        )
        self._earlier_metadata: dict[str, Any] = {}
        """Of the run that this one resumes."""
        self._accepted = list(accept_changed)
        self._taken_over: TakenOver | None = None
        self._failed_only = resume == FAILED
        found = folder_to_resume(prepared, resume, self.plan.planned, accept_changed) if resume else None
        if found is not None:
            path, self._earlier_metadata = found
            warn_of_changes(prepared, self._earlier_metadata)
            suite = str(self._earlier_metadata.get("suite") or run.suite)
            run = msgspec.structs.replace(run, id=path.resolve().name, suite=suite)
        watch = self._open_watch(None if found is None else path)  # first, so that a refusal leaves no folder
        self.path = choose_new_folder(prepared, run.id) if found is None else path
        self.folder = RunFolder(self.path)
        self.record = RunRecord(run, prepared, self.plan, self.folder, control.tally, listeners)
        if watch is not None:
            self.record.watch = watch
            self.plan.is_enough = lambda: watch.is_reached

    def _open_watch(self, resumed: Path | None) -> StoppingWatch | None:
        """The stopping rule of the settings, if any; what is only scored or mended is not cut short."""
        tasks, rescored = self.plan.tasks, self.reuse is not None and self.reuse.origin.kind == "rescore"
        if rescored or self._failed_only or not isinstance(tasks, Sequence):
            return None
        return open_watch(self.prepared.config, tasks, resumed)

    async def run(self) -> Result:
        """Play what is owed, from the first rollout to the last line of metadata."""
        try:
            with RunLog(self.path / LOG):
                set_optional_run_folder(self.prepared.environment, self.path.resolve())
                stored = self._load()
                self._take_over(stored)
                if self.reuse is not None:
                    self._take_from(self.reuse)
                if self.record.watch is not None:
                    self.plan.at_least = self.record.watch.begun
                self.record.begin(settled=len(self.plan.finished))
                warn_of_missing_tasks(self.prepared, self.record.count_tasks())
                async with AsyncExitStack() as closing:
                    await self._play(closing)
        finally:
            self.folder.close()
        record = self.record
        assert record.summary is not None
        return Result(
            run=record.run,
            summary=record.summary,
            folder=self.path,
            notable=record.tally.notable.keys(),
            taken_over=self._taken_over,
            early_stop=None if record.watch is None else record.watch.describe(),
        )

    async def _play(self, closing: AsyncExitStack) -> None:
        """Play the plan and record how the run ended, before the player is closed."""
        record = self.record
        try:
            player = await closing.enter_async_context(self._open_player())
            budget = self._open_budget()
            self.control.runner = runner = Runner(player, record.emit, record.keep, budget)
            record.on_failure = runner.fail
            if self.control.stopping:
                runner.stop()
            await self._finish(runner)
        except (StoreError, EnvError) as error:  # the disk, or the dataset, failed on the way
            record.end("failed", str(error))
            if not self.plan.counted:
                raise
        except ProctorError as error:
            record.end("failed", str(error))
            raise
        except BaseException as error:
            record.end("stopped", type(error).__name__)
            raise
        else:
            counted_before = record.count_tasks()
            if budget is not None and budget.is_exhausted:
                record.end("stopped", budget.describe())
            elif runner.stopping:
                record.end("stopped")
            else:
                record.end("finished", self._explain_early_end())
            if counted_before is None:  # the tasks were read lazily
                warn_of_missing_tasks(self.prepared, record.count_tasks())

    async def _finish(self, runner: Runner) -> None:
        """Run to the end of the plan, or until `Control.leave`, and write what is left."""
        self.control.playing = playing = asyncio.ensure_future(runner.run(self.plan))
        try:
            await asyncio.wait({playing})
        except asyncio.CancelledError:
            playing.cancel()
            await asyncio.wait({playing})
            raise
        self.record.flush()
        if playing.cancelled():
            return
        playing.result()
        if self.record.failure is not None:
            raise self.record.failure
        if not self.plan.counted and not runner.stopping:
            raise ConfigError(no_tasks(self.prepared))

    def _explain_early_end(self) -> str:
        watch = self.record.watch
        return "" if watch is None or not self.plan.ended_early else watch.describe().text

    def _open_budget(self) -> CostBudget | None:
        config, record = self.prepared.config, self.record
        if config.max_cost is None:
            return None
        unit = self.plan.rollouts_per_task if self.prepared.grouped else 1
        return CostBudget(config.max_cost, record, unit)

    @asynccontextmanager
    async def _open_player(self) -> AsyncIterator[UnitPlayer]:
        """What plays rollouts: this process, or worker processes."""
        prepared, endpoint = self.prepared, self.endpoint
        in_workers = prepared.plays_in_workers and self.reuse is None  # a record cannot travel to a worker
        if in_workers and prepared.found is not None:
            async with self._open_workers(prepared.found, prepared.workers()) as pool:
                yield pool
            return
        self.control.pace = endpoint.pace
        gateway = RolloutGateway(endpoint.model.name)
        cache = open_cache(prepared.config.cache, prepared.endpoint)
        context = RunContext(
            endpoint.model,
            sampling=prepared.config.sampling(),
            headers_from_state=prepared.config.headers_from_state,
            emit=self.record.emit,
            pace=endpoint.pace,
            agent=prepared.agent,
            gateway=gateway,
            request_seconds=prepared.endpoint.request_seconds,
            replies=cache,
        )
        try:
            yield Player(prepared.environment, context, prepared.rules(), self.record.emit, endpoint.budget)
        finally:
            await gateway.close()
            if cache is not None:
                await asyncio.to_thread(cache.close)

    def _open_workers(self, found: EnvironmentLocation, count: int) -> WorkerPool:
        prepared = self.prepared
        start = StartWorker(
            number=0,
            found=found,
            config=prepared.config,
            endpoint=prepared.endpoint,
            rules=prepared.rules(),
            folder=str(self.path),
            tools=self.folder.tools,
            sends_traces=any(map(wants_traces, self.record.listeners)),
            log_level=logging.getLogger().level,
        )
        self.record.workers = self.control.player = pool = WorkerPool(
            start,
            count,
            traits=prepared.environment.traits,
            folder=self.path,
            emit=self.record.emit,
            backend=resolve_backend(prepared.config, start),
            budget=self.endpoint.budget,
            sharers=prepared.sharers,
        )
        if self.control.stopping:
            pool.stop()
        return pool

    def _take_over(self, stored: StoredRollouts) -> None:
        """Report what a resumed run had, and record which changes the user accepted."""
        earlier = self._earlier_metadata
        if "settled" not in earlier:  # a new run, or one that was prepared and never begun
            return
        current = metadata.run_identity(self.prepared.config, self.prepared.endpoint)
        changes = list_accepted_changes(earlier, current, self._accepted, metadata.format_time(time.time()))
        self.record.accepted_changes = changes
        self._taken_over = TakenOver(
            finished=len(stored.settled),
            failed=len(stored.owed),
            planned=self.plan.planned,
            accepted_changes=tuple(changes),
        )
        if not self.prepared.grouped:  # of a group that lacks a rollout, finished ones are set aside
            warn_of_lost_rows(self.path, earlier["settled"], len(stored.settled))
        log.info("Resuming %s: %s.", self.path, self._taken_over.describe())

    def _take_from(self, reuse: ReusePlan) -> None:
        """Copy the rows that stay as they are, and have the others played or only scored."""
        plan, record = self.plan, self.record
        copied = reuse.keys("reuse")
        for start in range(0, len(copied), COPIED_AT_ONCE):
            keys = copied[start : start + COPIED_AT_ONCE]
            rows = [
                copy_row(reuse.plays.read_raw(reuse.stored_key(key)), key[0], reuse.origin.run_id)
                for key in keys
            ]
            self.folder.append(rows)
            for row in rows:
                line = read_line(row)
                assert line is not None
                record.count(line)
        plan.finished = dict.fromkeys(copied)
        rescored = reuse.keys("rescore")
        plan.recorded = {key: reuse.plays.reader(reuse.stored_key(key)) for key in rescored}
        if reuse.origin.kind == "rescore":
            plan.only = frozenset(rescored)
        record.origin = msgspec.to_builtins(reuse.origin)
        self.folder.tools = reuse.plays.tools

    def _load(self) -> StoredRollouts:
        """Read the rollouts that the folder holds already, and take them off the plan."""
        plan, tally = self.plan, self.record.tally
        stored = self.folder.load(
            self.record.count, owed_whole=plan.rollouts_per_task if self.prepared.grouped else 0
        )
        warn_of_timeout_change(self.prepared, self._earlier_metadata, tally.timed_out)
        self.folder.tools = msgspec.convert(self._earlier_metadata.get("tools") or (), tuple[ToolSpec, ...])
        if plan.planned is not None and len(stored.settled) > plan.planned:
            raise ConfigError(
                f"{self.path} cannot be resumed: it holds {len(stored.settled):,} finished rollouts, and "
                f"the environment now has tasks for {plan.planned:,} only."
            )
        if stored.settled or stored.owed:
            plan.finished = stored.settled
            plan.only = frozenset(stored.owed) if self._failed_only else None
            plan.earlier = {
                key: list_earlier_attempts(line) for key, line in stored.owed.items() if line.error
            }
            plan.on_task = build_task_check(stored, self.path)
        if stored.faults:
            log.warning(
                "%d lines of %s could not be read; those rollouts are played again.", stored.faults, self.path
            )
        return stored


def warn_of_missing_tasks(prepared: Prepared, counted: int | None) -> None:
    """Report that -n asks for more tasks than there are, if the user gave it."""
    if prepared.is_short_of_tasks(counted) and "num_examples" in prepared.origins:
        log.warning(
            "%s has %s, and -n %d asks for more; all %d are evaluated.",
            prepared.name,
            "1 task" if counted == 1 else f"{counted} tasks",
            prepared.config.num_examples,
            counted,
        )


def no_tasks(prepared: Prepared) -> str:
    return f"{prepared.config.env_id} has no tasks; there is nothing to evaluate."
