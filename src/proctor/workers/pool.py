"""Workers that play for one run: each rollout ends once, whichever worker dies.

A dead worker is noticed by its closed connection or by its exit. Its units go to other workers, and a new
worker replaces it. A rollout that lost two workers is played alone, so that it is not blamed for a neighbor;
if it loses three more, it ends in an error. A run whose workers only die ends. Knows neither what is played
nor where workers run.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import msgspec

from proctor.contracts import Traits
from proctor.engine.limits import ResizableSemaphore
from proctor.engine.plan import Slot, Unit
from proctor.engine.player import check_capacity
from proctor.engine.seat import Emit
from proctor.errors import ConfigError, EnvError, Failure, ProctorError
from proctor.events import ModelCalled, RolloutRetried
from proctor.report.lines import RolloutLine
from proctor.rollout import Attempt, Rollout, RolloutKey, Span, Timing
from proctor.support.logs import FILE_ONLY, log, log_printed
from proctor.trace import ToolSpec, Trace
from proctor.workers.backend import OpenBackend, WorkerBackend
from proctor.workers.frames import (
    DrainWorker,
    RunFile,
    ShareTools,
    StartWorker,
    UnitResult,
    WorkerEvents,
    WorkerFrame,
    WorkerLogLine,
    WorkerPrinted,
    WorkerReady,
    WorkerRefused,
    read_frame,
    unpack_events,
    unpack_rollouts,
)
from proctor.workers.handle import WorkerDiedError, WorkerHandle
from proctor.workers.local_backend import LocalBackend
from proctor.workers.shares import limit_workers, worker_share

DEATHS_BESIDE = 2
"""Workers one rollout may lose that played others as well, before it gets one for itself."""
DEATHS_ALONE = 3
"""Workers it may lose that it had for itself: some may have been killed from outside."""
DEATHS_IN_A_ROW = 2
"""How often all shared workers may die without any rollout finished in between."""
DYING_SECONDS = 5.0
"""From the end of the conversation to the end of the process."""
QUIET_SECONDS = 60.0
LOOK_SECONDS = 2.0
REOPEN_SECONDS = 2.0
"""Between attempts to open a worker whose backend fails, while others play on."""
OTHERS_SECONDS = 5.0
"""From the first ready worker to the first unit, where the others may have to wait for room."""


class WorkerPool:
    """Plays units in processes of their own."""

    def __init__(
        self,
        start: StartWorker,
        count: int,
        *,
        traits: Traits,
        folder: Path,
        emit: Emit,
        backend: OpenBackend | None = None,
        budget: ResizableSemaphore | None = None,
        sharers: int = 1,
    ) -> None:
        """`sharers`: evaluations, this one included, that share the endpoint's rates."""
        self.count = count = limit_workers(count, start.rules)
        self.rules = start.rules.bounded_by(traits.capacity)
        self.trouble: ProctorError | None = None
        self.rows: dict[RolloutKey, tuple[bytes, RolloutLine]] = {}
        """Rows of finished rollouts, as their workers encoded them."""
        self._start = start
        self._sharers = sharers
        self._traits = traits
        self._folder = folder
        self._emit = emit
        limits = [budget, None if traits.capacity is None else ResizableSemaphore(traits.capacity)]
        self._limits = [limit for limit in limits if limit is not None]
        """Limits on all workers together: the endpoint's budget and the environment's capacity."""
        self._opening_backend: OpenBackend = backend or LocalBackend()
        self._backend: WorkerBackend
        self._leaving = AsyncExitStack()
        self._children: list[WorkerHandle] = []
        self._listening: dict[asyncio.Task[None], WorkerHandle] = {}
        self._changed = asyncio.Event()
        self._alone = asyncio.Semaphore(count)
        self._started = 0
        self._number = 0
        self._deaths = 0
        """In a row, without any rollout finished."""
        self._stopping = False
        self._closing = False

    async def __aenter__(self) -> WorkerPool:
        try:
            await self._open_backend()
            if self._is_over():
                return self
            for seat in range(self.count):
                self._start_worker(seat)
            await self._wait_for_workers()
            if self.trouble is not None:
                raise self.trouble
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _open_backend(self) -> None:
        """Open it, unless the run is stopped meanwhile."""
        opening = asyncio.create_task(self._leaving.enter_async_context(self._opening_backend))
        opening.add_done_callback(lambda _: self._changed.set())
        try:
            await self._until(opening.done)
        finally:
            if not opening.done():
                opening.cancel()
                await asyncio.wait([opening])
        if not opening.cancelled():
            self._backend = opening.result()

    async def _wait_for_workers(self) -> None:
        """Until all are ready; if they may wait for room, until some are and the rest had a moment."""
        if self._backend.starts_with_some:
            await self._until(lambda: bool(self._living_workers()))
            with suppress(TimeoutError):
                async with asyncio.timeout(OTHERS_SECONDS):
                    await self._until(lambda: len(self._living_workers()) == self.count)
        else:
            await self._until(lambda: len(self._living_workers()) == self.count)

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        opening = [task for task, child in self._listening.items() if not child.is_open]
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        await asyncio.gather(*(child.leave() for child in self._children))
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)
        await self._leaving.aclose()

    def check(self, rollouts_per_task: int) -> None:
        check_capacity(self._traits, self.rules, rollouts_per_task)

    def score_after(self, count: int) -> None:
        raise ConfigError(f"Workers cannot wait for {count} rollouts of each other; leave out -N or -w.")

    def left_out(self, unit: Unit) -> None:
        pass

    def stop(self) -> None:
        self._stopping = True
        for child in self._children:
            child.send(DrainWorker())
        self._changed.set()

    def share(self, tools: Sequence[ToolSpec]) -> None:
        """Have rows leave out these tools from now on."""
        self._start = msgspec.structs.replace(self._start, tools=tools)
        for child in self._children:
            child.send(ShareTools(tools))

    async def play(self, unit: Unit) -> Sequence[Rollout]:
        async with AsyncExitStack() as leaving:
            for limit in self._limits:
                permits = min(len(unit), limit.limit)
                await limit.enter(permits)
                leaving.callback(limit.leave, permits)
            return await self._play(unit)

    async def _play(self, unit: Unit) -> Sequence[Rollout]:
        for deaths in range(DEATHS_BESIDE + DEATHS_ALONE):
            started_at = time.time()
            try:
                return await (self._play_beside(unit) if deaths < DEATHS_BESIDE else self._play_alone(unit))
            except WorkerDiedError as error:
                failure = Failure.of(error, "generation")
                if self.trouble is not None:
                    return ()
                if deaths + 1 == DEATHS_BESIDE + DEATHS_ALONE:
                    return [failed_rollout(slot, failure, started_at) for slot in unit]
                unit = tuple(self._owed_again(slot, failure, started_at) for slot in unit)
            except ProctorError as error:  # the task cannot be pickled, or no worker can start
                self._give_up(error)
                return ()
        raise AssertionError("unreachable")

    def _owed_again(self, slot: Slot, failure: Failure, started_at: float) -> Slot:
        self._emit(RolloutRetried(slot.key, failure))
        lost = Attempt("environment_error", failure, started_at, time.time() - started_at)
        return msgspec.structs.replace(slot, earlier=(*slot.earlier, lost))

    async def _play_beside(self, unit: Unit) -> Sequence[Rollout]:
        """By the least busy worker. Empty once nothing more will be started."""
        await self._until(lambda: bool(self._living_workers()))
        if self._is_over():
            return ()
        child = min(self._living_workers(), key=lambda child: child.load)
        return await child.play(self._next_number(), unit)

    async def _play_alone(self, unit: Unit) -> Sequence[Rollout]:
        """By a worker that is started for it."""
        async with self._alone:
            if self._is_over():
                return ()
            child = self._start_worker(0, is_alone=True)
            try:
                await self._until(lambda: child.is_ready or child.end is not None)
                return () if self._is_over() else await child.play(self._next_number(), unit)
            finally:
                await child.leave()
                self._forget(child)

    def _forget(self, child: WorkerHandle) -> None:
        if child in self._children:
            self._children.remove(child)

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    async def _until(self, happened: Callable[[], bool]) -> None:
        """Wait for something, or for there to be nothing more to wait for."""
        while not (self._is_over() or happened()):
            self._changed.clear()
            await self._changed.wait()

    def _is_over(self) -> bool:
        return self._stopping or self.trouble is not None

    def _living_workers(self) -> list[WorkerHandle]:
        return [
            child for child in self._children if child.is_ready and child.end is None and not child.is_alone
        ]

    def _give_up(self, error: ProctorError) -> None:
        self.trouble = self.trouble or error
        self._changed.set()

    def _start_worker(self, seat: int, *, is_alone: bool = False) -> WorkerHandle:
        self._started += 1
        process = self._backend.create_process(self._started, self._folder / f"worker-{self._started}.log")
        child = WorkerHandle(self._started, seat, process, is_alone=is_alone)
        self._children.append(child)
        task = asyncio.create_task(self._attend(child))
        self._listening[task] = child
        task.add_done_callback(self._listening.pop)
        return child

    async def _attend(self, child: WorkerHandle) -> None:
        """Open a worker, listen to it, and replace it if it dies."""
        share = worker_share(self._start, self.count, child.seat, self._sharers)
        try:
            try:
                reader = await child.connect(msgspec.structs.replace(share, number=child.number))
            except EnvError as error:
                await self._reopen(child, error)
                return
            await self._listen(child, reader)
            if not (self._closing or child.end is not None):
                await self._replace_dead_worker(child)
        except ProctorError as error:
            child.fail(WorkerDiedError(str(error)))
            self._give_up(error)

    async def _reopen(self, child: WorkerHandle, error: EnvError) -> None:
        """Try another worker in place of one that could not be opened; without any left, the run ends."""
        child.fail(WorkerDiedError(f"{child.name} could not be opened: {error}"))
        self._forget(child)
        self._deaths += 1
        if not self._living_workers() and self._deaths > DEATHS_IN_A_ROW * self.count:
            raise error
        log.warning("worker %d could not be opened: %s", child.number, error)
        self._changed.set()
        await asyncio.sleep(REOPEN_SECONDS)
        if not (self._is_over() or self._closing or child.is_alone):
            self._start_worker(child.seat)

    async def _listen(self, child: WorkerHandle, reader: asyncio.StreamReader) -> None:
        watch = asyncio.create_task(self._watch(child))
        try:
            while (frame := await read_frame(reader)) is not None:
                child.last_frame_at = time.monotonic()
                self._handle(child, frame)
        except Exception:
            log.exception("%s cannot be understood", child.name)
            child.process.kill()
        finally:
            watch.cancel()
            child.hang_up()

    def _handle(self, child: WorkerHandle, frame: WorkerFrame) -> None:
        if isinstance(frame, WorkerEvents):
            for event in unpack_events(frame):
                if isinstance(event, ModelCalled) and event.call.reply is not None:
                    self._note_answer()
                self._emit(event)
        elif isinstance(frame, UnitResult):
            self._take(child, frame)
        elif isinstance(frame, RunFile):
            keep_file(self._folder, frame)
        elif isinstance(frame, WorkerLogLine):
            logging.getLogger(frame.logger).log(
                frame.level,
                "worker %d: %s",
                *(child.number, frame.text),
                extra=FILE_ONLY if frame.file_only else None,
            )
        elif isinstance(frame, WorkerPrinted):
            log_printed(f"worker {child.number}: {frame.text}")
        elif isinstance(frame, WorkerReady):
            child.is_ready = True
            self._changed.set()
        elif isinstance(frame, WorkerRefused):
            kind = ConfigError if frame.is_config else EnvError
            self._give_up(kind(frame.reason))
            child.fail(WorkerDiedError(frame.reason))

    def _take(self, child: WorkerHandle, frame: UnitResult) -> None:
        self._deaths = 0
        unit = child.unit(frame.number)
        if unit is None:
            return
        played = unpack_rollouts(frame, unit)
        for (rollout, line), row in zip(played, frame.rows, strict=True):
            self.rows[rollout.key] = (row, line)
        child.answer(frame.number, [rollout for rollout, _ in played])

    def _note_answer(self) -> None:
        if not self._start.answered:
            self._start = msgspec.structs.replace(self._start, answered=True)

    async def _watch(self, child: WorkerHandle) -> None:
        """Notice what a socket does not show: an exit that an inherited copy of it hides, or silence."""
        rules = self.rules
        limits = (rules.start_seconds, rules.rollout_seconds, rules.scoring_seconds)
        limit = sum(seconds or 0.0 for seconds in limits)
        is_reported = False
        looked_at = time.monotonic()
        while True:
            was_dead = child.process.is_over
            await asyncio.sleep(LOOK_SECONDS)
            if was_dead:  # and everything it sent has been read meanwhile
                child.hang_up()
            now = time.monotonic()
            if now - looked_at > 2 * LOOK_SECONDS:  # this process slept, after Ctrl-Z for example
                child.last_frame_at = now
            looked_at = now
            quiet = now - child.last_frame_at
            if quiet > QUIET_SECONDS and not is_reported:
                busy = "something blocks its event loop" if child.is_ready else "it loads the environment"
                log.warning("%s has said nothing for %d s: %s", child.name, quiet, busy)
            is_reported = quiet > QUIET_SECONDS
            if child.is_ready and limit and quiet > max(limit, QUIET_SECONDS):
                child.process.kill()

    async def _replace_dead_worker(self, child: WorkerHandle) -> None:
        """Log how a worker died, owe its units again, and start another."""
        end = await child.wait_for_end(DYING_SECONDS)
        child.process.kill()  # what it started and cannot close any more
        how = f"{child.name} {end.how}"
        words = child.last_words()
        output = f"; its last words: {words}" if words else ""
        for line in child.crash_lines():
            log_printed(f"worker {child.number}: {line}")
        self._deaths += not child.is_alone
        fell_at_the_start = end.by_itself and not child.is_ready
        if self._deaths > DEATHS_IN_A_ROW * self.count or fell_at_the_start:
            self._give_up(EnvError(f"{how}{output}; see {child.process.log_file}"))
        else:
            log.warning("%s; %d units it was playing are played again by others%s", how, child.lost, output)
        child.fail(WorkerDiedError(how))
        child.remove_empty_log()
        self._forget(child)
        if not (self._is_over() or self._closing or child.is_alone):
            self._start_worker(child.seat)
        self._changed.set()


def keep_file(folder: Path, frame: RunFile) -> None:
    path = (folder / frame.path).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"a worker sent a file for {frame.path!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(frame.data)


def failed_rollout(slot: Slot, failure: Failure, started_at: float) -> Rollout:
    now = time.time()
    never = Span(now, now)
    return Rollout(
        task=slot.task,
        number=slot.number,
        outcome="environment_error",
        trace=Trace(),
        timing=Timing(Span(started_at, started_at), Span(started_at, now), never, now),
        failure=failure,
        earlier=slot.earlier,
    )
