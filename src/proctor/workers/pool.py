"""Worker processes that play for one run: each rollout ends once, whichever worker dies.

A dead worker is noticed by its closed socket or by its exit. Its units go to other workers, and a new worker
replaces it. A rollout that lost two workers is played alone, so that it is not blamed for a neighbour; if it
loses three more, it ends in an error. A run whose workers only die ends. Knows nothing of what is played.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from proctor.contracts import Traits
from proctor.engine.limits import ResizableSemaphore
from proctor.engine.plan import Slot, Unit
from proctor.engine.player import check_capacity
from proctor.engine.seat import Emit
from proctor.errors import ConfigError, EnvError, Failure, ProctorError
from proctor.events import ModelCalled, RolloutRetried
from proctor.report import RolloutLine
from proctor.rollout import Attempt, Rollout, RolloutKey, Span, Timing
from proctor.support.logs import FILE_ONLY, log, log_printed
from proctor.support.processes import describe_exit
from proctor.trace import ToolSpec, Trace
from proctor.workers.child import WorkerDiedError, WorkerHandle
from proctor.workers.shares import limit_workers, worker_share
from proctor.workers.wire import (
    DrainWorker,
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
    unpack_rollouts,
)

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
        self._children: list[WorkerHandle] = []
        self._listening: set[asyncio.Task[None]] = set()
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
            for seat in range(self.count):
                await self._start_worker(seat)
            await self._until(lambda: len(self._living()) == self.count)
            if self.trouble is not None:
                raise self.trouble
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        await asyncio.gather(*(child.leave() for child in self._children))
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)

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
        """By the least busy worker. Empty when nothing more is to be started."""
        await self._until(lambda: bool(self._living()))
        if self._is_over():
            return ()
        child = min(self._living(), key=lambda child: child.load)
        return await child.play(self._next_number(), unit)

    async def _play_alone(self, unit: Unit) -> Sequence[Rollout]:
        """By a worker that is started for it."""
        async with self._alone:
            if self._is_over():
                return ()
            child = await self._start_worker(0, is_alone=True)
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

    def _living(self) -> list[WorkerHandle]:
        return [
            child for child in self._children if child.is_ready and child.end is None and not child.is_alone
        ]

    def _give_up(self, error: ProctorError) -> None:
        self.trouble = self.trouble or error
        self._changed.set()

    async def _start_worker(self, seat: int, *, is_alone: bool = False) -> WorkerHandle:
        self._started += 1
        child = WorkerHandle(
            self._started, seat, self._folder / f"worker-{self._started}.log", is_alone=is_alone
        )
        self._children.append(child)
        share = worker_share(self._start, self.count, seat, self._sharers)
        reader = await child.connect(msgspec.structs.replace(share, number=child.number))
        task = asyncio.create_task(self._listen(child, reader))
        self._listening.add(task)
        task.add_done_callback(self._listening.discard)
        return child

    async def _listen(self, child: WorkerHandle, reader: asyncio.StreamReader) -> None:
        watch = asyncio.create_task(self._watch(child))
        try:
            while (frame := await read_frame(reader)) is not None:
                child.heard_at = time.monotonic()
                self._handle(child, frame)
        except Exception:
            log.exception("%s cannot be understood", child.name)
            child.kill()
        finally:
            watch.cancel()
            child.hang_up()
        if self._closing or child.end is not None:
            return
        try:
            await self._replace_dead_worker(child)
        except ProctorError as error:
            self._give_up(error)

    def _handle(self, child: WorkerHandle, frame: WorkerFrame) -> None:
        if isinstance(frame, WorkerEvents):
            for event in frame.events:
                if isinstance(event, ModelCalled) and event.call.reply is not None:
                    self._note_answer()
                self._emit(event)
        elif isinstance(frame, UnitResult):
            self._take(child, frame)
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
            was_dead = child.process.poll() is not None
            await asyncio.sleep(LOOK_SECONDS)
            if was_dead:  # and everything it sent has been read meanwhile
                child.hang_up()
            now = time.monotonic()
            if now - looked_at > 2 * LOOK_SECONDS:  # this process slept, after Ctrl-Z for example
                child.heard_at = now
            looked_at = now
            quiet = now - child.heard_at
            if quiet > QUIET_SECONDS and not is_reported:
                busy = "something blocks its event loop" if child.is_ready else "it loads the environment"
                log.warning("%s has said nothing for %d s: %s", child.name, quiet, busy)
            is_reported = quiet > QUIET_SECONDS
            if child.is_ready and limit and quiet > max(limit, QUIET_SECONDS):
                child.kill()

    async def _replace_dead_worker(self, child: WorkerHandle) -> None:
        """Log how a worker died, owe its units again, and start another."""
        code = await child.wait_for_end(DYING_SECONDS)
        child.kill()  # what it started and cannot close any more
        how = f"{child.name} {describe_exit(code)}"
        words = child.last_words()
        said = f"; its last words: {words}" if words else ""
        for line in child.crash_lines():
            log_printed(f"worker {child.number}: {line}")
        self._deaths += not child.is_alone
        fell_at_the_start = code >= 0 and not child.is_ready
        if self._deaths > DEATHS_IN_A_ROW * self.count or fell_at_the_start:
            self._give_up(EnvError(f"{how}{said}; see {child.log_file}"))
        else:
            log.warning("%s; %d units it was playing are played again by others%s", how, child.lost, said)
        child.fail(WorkerDiedError(how))
        child.remove_empty_log()
        self._forget(child)
        if not (self._is_over() or self._closing or child.is_alone):
            await self._start_worker(child.seat)
        self._changed.set()


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
