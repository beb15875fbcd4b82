"""Worker processes that play for one run: each rollout is played once, whoever dies.

A worker that dies is noticed by its closed socket. What it was playing is owed again and given to another; a
new worker takes its place. A rollout that takes three workers with it ends in an error, and so does a run
whose workers only die. Knows nothing of what is played.
"""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.contracts import Traits
from proctor.engine.limits import Gate
from proctor.engine.plan import Slot, Unit
from proctor.engine.player import check_capacity
from proctor.engine.seat import Emit
from proctor.errors import ConfigError, EnvError, Failure, ProctorError
from proctor.events import ModelCalled, RolloutRetried
from proctor.report import Line
from proctor.rollout import Attempt, Rollout, RolloutKey, Span, Timing
from proctor.trace import ToolSpec, Trace
from proctor.workers.wire import (
    Frame,
    Happened,
    Play,
    Played,
    Ready,
    Refused,
    Said,
    Share,
    Start,
    Stop,
    framed,
    framed_play,
    read_frame,
)

log = logging.getLogger("proctor")

MOST_DEATHS = 3
"""Workers one rollout may take with it."""
DEATHS_IN_A_ROW = 5
"""Workers that may die without any rollout finished in between."""
LEAVING_SECONDS = 25.0
QUIET_SECONDS = 60.0
LOOK_SECONDS = 5.0
LAST_WORDS = 3
"""Lines of a dead worker's log that are worth repeating."""


class WorkerDiedError(EnvError):
    """The process that played a rollout is gone."""


class Worker:
    """A worker process as the run sees it."""

    def __init__(self, number: int, log_file: Path) -> None:
        self.number = number
        self.log_file = log_file
        self.is_ready = False
        self.units: dict[int, asyncio.Future[Sequence[Rollout]]] = {}
        self.load = 0
        self.heard_at = time.monotonic()
        self.is_gone = False
        ours, theirs = socket.socketpair()
        words = [sys.executable, "-m", "proctor.workers.process", str(theirs.fileno())]
        with log_file.open("ab") as output:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the run, which tells its workers
            )
        theirs.close()
        self._socket = ours

    async def connect(self, start: Start) -> asyncio.StreamReader:
        reader, self._writer = await asyncio.open_connection(sock=self._socket)
        self.send(start)
        return reader

    def send(self, frame: Frame) -> None:
        if not self.is_gone:
            self._writer.write(framed(frame))

    async def play(self, number: int, unit: Unit) -> Sequence[Rollout]:
        self.load += len(unit)
        answer: asyncio.Future[Sequence[Rollout]] = asyncio.get_running_loop().create_future()
        self.units[number] = answer
        try:
            if not self.is_gone:
                self._writer.write(framed_play(Play(number, unit)))
            return await answer
        finally:
            self.load -= len(unit)
            self.units.pop(number, None)

    def fail(self, error: BaseException) -> None:
        """Nothing more comes from here."""
        self.is_gone = True
        for answer in self.units.values():
            if not answer.done():
                answer.set_exception(error)

    def last_words(self) -> str:
        try:
            lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return " / ".join([line.strip() for line in lines if line.strip()][-LAST_WORDS:])

    async def leave(self) -> None:
        """Close the conversation, which tells the worker to go, and see that it does."""
        self.is_gone = True
        self._writer.close()
        try:
            await asyncio.to_thread(self.process.wait, LEAVING_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)
        self.forget_empty_log()

    def forget_empty_log(self) -> None:
        with suppress(OSError):
            if not self.log_file.stat().st_size:
                self.log_file.unlink()


class WorkerPool:
    """Plays units in processes of their own."""

    def __init__(
        self,
        start: Start,
        count: int,
        *,
        traits: Traits,
        folder: Path,
        emit: Emit,
        budget: Gate | None = None,
    ) -> None:
        self.count = count
        self.rules = start.rules.bounded_by(None if traits.capacity is None else traits.capacity * count)
        self.trouble: ProctorError | None = None
        self.rows: dict[RolloutKey, tuple[bytes, Line]] = {}
        """Of rollouts that came back, as their worker wrote them down."""
        self._start = share_of(start, count)
        self._traits = traits
        self._folder = folder
        self._emit = emit
        self._budget = budget
        self._workers: list[Worker] = []
        self._listening: set[asyncio.Task[None]] = set()
        self._free = asyncio.Condition()
        self._started = 0
        self._number = 0
        self._deaths = 0
        """In a row, without any rollout finished."""
        self._stopping = False
        self._closing = False

    async def __aenter__(self) -> WorkerPool:
        try:
            for _ in range(self.count):
                await self._hire()
            async with self._free:
                await self._free.wait_for(lambda: self.trouble or len(self._living()) == self.count)
            if self.trouble is not None:
                raise self.trouble
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        await asyncio.gather(*(worker.leave() for worker in self._workers))
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
        for worker in self._workers:
            worker.send(Stop())

    def share(self, tools: Sequence[ToolSpec]) -> None:
        """Rows need not repeat these tools any more."""
        self._start = msgspec.structs.replace(self._start, tools=tools)
        for worker in self._workers:
            worker.send(Share(tools))

    async def play(self, unit: Unit) -> Sequence[Rollout]:
        places = 0 if self._budget is None else min(len(unit), self._budget.limit)
        if self._budget is not None:
            await self._budget.enter(places)
        try:
            return await self._play(unit)
        finally:
            if self._budget is not None:
                self._budget.leave(places)

    async def _play(self, unit: Unit) -> Sequence[Rollout]:
        for deaths in range(1, MOST_DEATHS + 1):
            worker = await self._least_busy()
            if worker is None:
                return ()
            self._number += 1
            started_at = time.time()
            try:
                return await worker.play(self._number, unit)
            except WorkerDiedError as error:
                failure = Failure.of(error, "generation")
                if self.trouble is not None:
                    return ()
                if deaths < MOST_DEATHS:
                    unit = tuple(self._owed_again(slot, failure, started_at) for slot in unit)
                    continue
                return [died(slot, failure, started_at) for slot in unit]
            except ConfigError as error:  # the task cannot travel
                self.trouble = self.trouble or error
                return ()
        raise AssertionError("unreachable")

    def _owed_again(self, slot: Slot, failure: Failure, started_at: float) -> Slot:
        self._emit(RolloutRetried(slot.key, failure))
        lost = Attempt("environment_error", failure, started_at, time.time() - started_at)
        return msgspec.structs.replace(slot, earlier=(*slot.earlier, lost))

    async def _least_busy(self) -> Worker | None:
        """Whoever has least to do; None when nothing more is to be started."""
        async with self._free:
            while not (self.trouble or (self._stopping and not self._living())):
                living = self._living()
                if living:
                    return min(living, key=lambda worker: worker.load)
                await self._free.wait()
        return None

    def _living(self) -> list[Worker]:
        return [worker for worker in self._workers if not worker.is_gone and worker.is_ready]

    async def _hire(self) -> None:
        self._started += 1
        worker = Worker(self._started, self._folder / f"worker-{self._started}.log")
        reader = await worker.connect(msgspec.structs.replace(self._start, number=worker.number))
        self._workers.append(worker)
        task = asyncio.create_task(self._listen(worker, reader))
        self._listening.add(task)
        task.add_done_callback(self._listening.discard)

    async def _listen(self, worker: Worker, reader: asyncio.StreamReader) -> None:
        watch = asyncio.create_task(self._watch(worker))
        try:
            while (frame := await read_frame(reader)) is not None:
                worker.heard_at = time.monotonic()
                await self._hear(worker, frame)
        except Exception:
            log.exception("worker %d cannot be understood", worker.number)
            worker.process.kill()
        finally:
            watch.cancel()
        if not self._closing and not worker.is_gone:
            await self._bury(worker)

    async def _hear(self, worker: Worker, frame: Frame) -> None:
        if isinstance(frame, Happened):
            for event in frame.events:
                if isinstance(event, ModelCalled) and event.call.reply is not None:
                    self._note_answer()
                self._emit(event)
        elif isinstance(frame, Played):
            self._deaths = 0
            rows = zip(frame.rollouts, frame.rows, frame.lines, strict=True)
            self.rows.update({rollout.key: (row, line) for rollout, row, line in rows})
            answer = worker.units.get(frame.number)
            if answer is not None and not answer.done():
                answer.set_result(frame.rollouts)
        elif isinstance(frame, Said):
            log.log(frame.level, "worker %d: %s", worker.number, frame.text)
        elif isinstance(frame, Ready):
            worker.is_ready = True
            await self._wake()
        elif isinstance(frame, Refused):
            kind = ConfigError if frame.is_config else EnvError
            self.trouble = self.trouble or kind(frame.reason)
            worker.fail(WorkerDiedError(frame.reason))
            await self._wake()

    def _note_answer(self) -> None:
        if not self._start.answered:
            self._start = msgspec.structs.replace(self._start, answered=True)

    async def _watch(self, worker: Worker) -> None:
        """A worker whose event loop is stuck neither plays nor dies: say so, and in the end put it down."""
        limit = sum(seconds or 0.0 for seconds in (self.rules.rollout_seconds, self.rules.scoring_seconds))
        is_told = False
        looked_at = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            if now - looked_at > 2 * LOOK_SECONDS:  # it was us who slept, after Ctrl-Z for example
                worker.heard_at = now
            looked_at = now
            quiet = now - worker.heard_at
            if quiet > QUIET_SECONDS and not is_told:
                is_told = True
                log.warning(
                    "worker %d (process %d) has said nothing for %d s: something blocks its event loop",
                    worker.number,
                    worker.process.pid,
                    quiet,
                )
            elif quiet <= QUIET_SECONDS:
                is_told = False
            if limit and quiet > max(limit, QUIET_SECONDS):
                worker.process.kill()

    async def _bury(self, worker: Worker) -> None:
        """Say how a worker died, owe again what it was playing, and put another in its place."""
        code = await asyncio.to_thread(worker.process.wait)
        lost = sum(1 for answer in worker.units.values() if not answer.done())
        how = f"worker {worker.number} (process {worker.process.pid}) {died_of(code)}"
        words = worker.last_words()
        said = f"; its last words: {words}" if words else ""
        self._deaths += 1
        fell_at_the_start = code >= 0 and not worker.is_ready
        if self._deaths >= DEATHS_IN_A_ROW or fell_at_the_start:
            self.trouble = self.trouble or EnvError(f"{how}{said}; see {worker.log_file}")
        else:
            log.warning("%s; %d units it was playing are played again by others%s", how, lost, said)
        worker.fail(WorkerDiedError(how))
        worker.forget_empty_log()
        self._workers.remove(worker)
        if self.trouble is None and not self._stopping:
            await self._hire()
        await self._wake()

    async def _wake(self) -> None:
        async with self._free:
            self._free.notify_all()


def share_of(start: Start, count: int) -> Start:
    """One worker's part of what the run may do at once and per minute."""
    rules, endpoint = start.rules, start.endpoint

    def part(limit: int | None) -> int | None:
        return None if limit is None else math.ceil(limit / count)

    return msgspec.structs.replace(
        start,
        rules=msgspec.structs.replace(
            rules,
            at_once=math.ceil(rules.at_once / count),
            generation_at_once=part(rules.generation_at_once),
            scoring_at_once=part(rules.scoring_at_once),
        ),
        endpoint=slower(endpoint, count),
    )


def slower(endpoint: Endpoint, count: int) -> Endpoint:
    return msgspec.structs.replace(
        endpoint,
        requests_per_minute=endpoint.requests_per_minute and endpoint.requests_per_minute / count,
        tokens_per_minute=endpoint.tokens_per_minute and endpoint.tokens_per_minute / count,
        replicas=tuple(slower(replica, count) for replica in endpoint.replicas),
    )


def died(slot: Slot, failure: Failure, started_at: float) -> Rollout:
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


def died_of(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
