"""One run: its folder, its tally and its engine, from the first owed rollout to the last line of metadata.

Knows nothing of where the settings came from or who is watching.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.config.prices import price_of
from proctor.contracts import Listener, Model
from proctor.engine.limits import Throttle
from proctor.engine.plan import Plan
from proctor.engine.player import Player
from proctor.engine.runner import Runner
from proctor.engine.seat import Table
from proctor.errors import ConfigError, EnvError, Failure, ProctorError, StoreError
from proctor.events import Event, RunEnded, RunStarted
from proctor.preparation import Prepared
from proctor.report import AttemptLine, Line, Summary, Tally, line_of
from proctor.rollout import Attempt, Rollout, RolloutKey
from proctor.run import Run, RunStatus, new_run_id
from proctor.store import metadata
from proctor.store.folder import RunFolder, Stored, read_metadata
from proctor.store.locate import journal_base, newest_first, prune_journals, run_folders, saved_base
from proctor.store.resume import differences, is_unfinished
from proctor.store.rows import encode_row
from proctor.task import Task
from proctor.trace import ToolSpec

log = logging.getLogger("proctor")

LATEST = "latest"
"""Given as the folder to resume: the newest unfinished run that matches."""
METADATA_EVERY_SECONDS = 5.0


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
        self.pace: Throttle | None = None
        """How fast the endpoint lets us ask."""
        self.tally: Tally | None = None
        """All that is counted so far, with what was finished before a resume."""

        self.playing: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Start nothing more; what is in flight is played to its end."""
        self.stopping = True
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
        model: Model,
        listeners: Sequence[Listener],
        control: Control,
        resume: str | None,
    ) -> None:
        self.prepared = prepared
        self.model = model
        self.listeners = list(listeners)
        self.control = control
        self.tally = control.tally = Tally(getattr(prepared.environment, "pass_threshold", 0.5))
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
            env_id=prepared.config.env_id,
            model=prepared.endpoint.model,
            status="running",
            started_at=time.time(),
        )
        self._metadata: dict[str, Any] = {}
        self._rows: dict[RolloutKey, tuple[bytes, Line]] = {}
        """Of rollouts that ended and are not kept yet."""
        self.path = self._resumed(resume) if resume else self._fresh()
        self.folder = RunFolder(self.path)
        self._saved_at = 0.0

    async def run(self) -> Result:
        try:
            await self._play()
        finally:
            self.folder.close()
        summary = self.summary()
        return Result(run=self.run_, summary=summary, folder=self.path, notable=self.tally.notable.keys())

    async def _play(self) -> None:
        stored = self._load()
        config = self.prepared.config
        self._metadata = metadata.opening(
            self.run_, config, self.prepared.endpoint, self.prepared.provenance, self.prepared.selection()
        )
        self._say_tools(self.folder.tools)
        self._save()
        self.emit(RunStarted(self.run_, self.plan.planned, len(stored.settled)))
        table = Table(
            self.model,
            sampling=config.sampling(),
            headers_from_state=config.headers_from_state,
            emit=self.emit,
        )
        player = Player(self.prepared.environment, table, self.prepared.rules(), self.emit)
        runner = Runner(player, self.emit, self.keep, self.ended)
        self.control.pace = table.pace
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
        try:
            self._share_tools(rollout)
        finally:
            self._rows[rollout.key] = (encode_row(rollout, self.folder.tools), line_of(rollout))

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
        models = [self.prepared.endpoint.model, *self.tally.other_usage]
        prices = {name: price for name in models if (price := price_of(name)) is not None}
        return self.tally.summary(
            planned=self.planned(),
            rollouts_per_task=self.plan.rollouts_per_task,
            seed=self.prepared.config.seed,
            model=self.prepared.endpoint.model,
            prices=prices,
        )

    def _end(self, status: RunStatus, note: str) -> None:
        self.run_ = msgspec.structs.replace(self.run_, status=status, ended_at=time.time(), note=note)
        self._metadata.update(metadata.closing(self.summary()))
        try:
            self._save()
        except StoreError as error:
            log.error("%s", error)
        self.emit(RunEnded(self.run_))

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        settled = self.tally.scored + self.tally.outcomes["excluded"]
        self._metadata.update(metadata.progress(self.run_, settled, self.planned()))
        self.folder.save_metadata(self._metadata)

    def _nothing_to_do(self) -> str:
        return f"{self.prepared.config.env_id} has no tasks; there is nothing to evaluate."

    # Where the run is kept, and what an earlier one left

    def _bases(self) -> tuple[Path, Path]:
        config = self.prepared.config
        return saved_base(config.output_dir, config.env_dir_path, self.prepared.module), journal_base()

    def _fresh(self) -> Path:
        saved, journal = self._bases()
        keeps = self.prepared.config.save_results or self.prepared.config.output_dir is not None
        if not keeps:
            prune_journals(journal)
        base = saved if keeps else journal
        return run_folders(base, self.run_.env_id, self.run_.model) / self.run_.id

    def _resumed(self, resume: str) -> Path:
        current = metadata.identity(self.prepared.config, self.prepared.endpoint)
        if resume != LATEST:
            path = Path(resume)
            try:
                self._metadata = read_metadata(path)
            except StoreError as error:
                raise ConfigError(f"{error} Give --resume the folder of a run.") from error
            changed = differences(self._metadata, current)
            if changed:
                raise ConfigError(f"{path} cannot be resumed: {'; '.join(changed)}.")
            return self._picked_up(path)
        folders = [run_folders(base, self.run_.env_id, self.run_.model) for base in self._bases()]
        for path in newest_first(*folders):
            try:
                self._metadata = read_metadata(path)
            except StoreError:
                continue
            if not differences(self._metadata, current) and is_unfinished(
                self._metadata, current, self.plan.planned
            ):
                return self._picked_up(path)
        self._metadata = {}
        log.warning("There is no unfinished run with these settings to resume; a new one is started.")
        return self._fresh()

    def _picked_up(self, path: Path) -> Path:
        then = (self._metadata.get("environment") or {}).get("content_hash")
        now = self.prepared.provenance.get("content_hash")
        if then and now and then != now:
            log.warning(
                "The code of %s has changed since this run was started; finished rollouts keep their scores.",
                self.run_.env_id,
            )
        self.run_ = msgspec.structs.replace(self.run_, id=path.resolve().name)
        return path

    def _load(self) -> Stored:
        """What the folder holds already; shrinks the plan by it."""
        size = self.plan.rollouts_per_task if self.prepared.grouped else 0
        stored = self.folder.load(self.tally.add, owed_whole=size)
        self.folder.tools = msgspec.convert(self._metadata.get("tools") or (), tuple[ToolSpec, ...])
        planned = self.plan.planned
        if planned is not None and len(stored.settled) > planned:
            raise ConfigError(
                f"{self.path} cannot be resumed: it holds {len(stored.settled):,} finished rollouts, and "
                f"the environment now has tasks for {planned:,} only."
            )
        if stored.settled or stored.owed:
            self.plan.finished = stored.settled
            self.plan.earlier = {key: earlier_of(line) for key, line in stored.owed.items() if line.error}
            self.plan.on_task = same_tasks(stored, self.path)
        if stored.faults:
            log.warning(
                "%d lines of %s could not be read; those rollouts are played again.", stored.faults, self.path
            )
        return stored


def earlier_of(line: Line) -> tuple[Attempt, ...]:
    """Every failed try that a stored rollout tells of, the one it ended with last."""
    assert line.error is not None
    last = AttemptLine(line.outcome, line.error, line.timing.start_time, line.timing.total, line.token_usage)
    return tuple(
        Attempt(
            each.outcome,
            Failure(each.error.error, each.error.message, each.error.phase),
            each.start,
            each.seconds,
            each.usage,
        )
        for each in (*line.earlier_attempts, last)
    )


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


def same_tasks(stored: Stored, path: Path) -> Callable[[Task], None]:
    """Refuses a task whose content is not the one the stored rollouts were played on."""
    hashes = {key[0]: task_hash for key, task_hash in stored.settled.items()}

    def check(task: Task) -> None:
        known = hashes.get(task.id)
        if known is not None and known != task.hash:
            raise ConfigError(
                f"{path} cannot be resumed: task {task.id!r} has changed since; start a new run."
            )

    return check
