"""The frames that a run and its workers exchange.

Values are pickled: both ends are the same program of the same user, joined by a private socket or by a link
that admits no one else (`link.py`), and tasks may hold whatever an environment put there. What came from an
environment is pickled by itself inside its frame, so that a value which cannot travel spoils one unit and not
the conversation. Knows nothing of processes.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.config.schema import EvalConfig
from proctor.engine.plan import Unit
from proctor.engine.player import Rules
from proctor.errors import ConfigError, Failure
from proctor.events import Event, ModelCalled, RequestDelayed, RolloutRetried, RolloutStarted
from proctor.packages.loading import EnvironmentLocation
from proctor.report.lines import RolloutLine, rollout_line
from proctor.rollout import Rollout, Score, Span, Timing
from proctor.store.folder import read_line
from proctor.store.rows import to_json_value
from proctor.task import Task, TaskId
from proctor.trace import Reply, ToolSpec, Trace

BATCH_SECONDS = 0.005
"""Over TLS, a write for each frame would cost a quarter of what a rollout costs."""
LENGTH_BYTES = 8
WorkerEvent = RolloutStarted | ModelCalled | RequestDelayed | RolloutRetried
"""What happens in a worker; all other events are the run's own."""
EVENT_ENCODER = msgspec.msgpack.Encoder()
EVENT_DECODER = msgspec.msgpack.Decoder(list[WorkerEvent])


class StartWorker(msgspec.Struct, frozen=True, kw_only=True):
    """To a worker, first: what to load and how to play."""

    number: int
    found: EnvironmentLocation
    config: EvalConfig
    endpoint: Endpoint
    rules: Rules
    folder: str
    """Of the run."""
    tools: Sequence[ToolSpec] = ()
    answered: bool = False
    """The model has answered before, so a refusal now ends one rollout and not the run."""
    sends_traces: bool = True
    """A listener wants them; the rows have them in any case."""
    sends_files: bool = False
    """What is kept in its folder is sent, because the run's folder is on another machine."""
    log_level: int = logging.WARNING
    """The least level that loggers other than ours send."""


class Unpack(msgspec.Struct, frozen=True, kw_only=True):
    """To a worker on another machine, before anything else: what it needs from the run's."""

    bundles: Sequence[str]
    """Their digests."""
    shown: Sequence[tuple[str, str, str]]
    """Digest, path in the bundle, and where the working directory shows it."""
    variables: Mapping[str, str]


class MissingBundles(msgspec.Struct, frozen=True):
    """From such a worker: its machine lacks these."""

    digests: Sequence[str]


class BundlePiece(msgspec.Struct, frozen=True):
    """To such a worker: the next bytes of the bundle; none at its end."""

    data: bytes


class Unpacked(msgspec.Struct, frozen=True):
    """From a worker on another machine: where its files are on its machine."""

    roots: Mapping[str, str]
    """Of each bundle, by its digest."""
    run_folder: str
    """Where it keeps what belongs into the run's folder, until that is sent."""


class PlayUnit(msgspec.Struct, frozen=True):
    """To a worker: play this unit of that task, and call it by this number."""

    number: int
    task: TaskId
    unit: bytes


class ShareTools(msgspec.Struct, frozen=True):
    """To a worker: leave these tools out of rows from now on."""

    tools: Sequence[ToolSpec]


class DrainWorker(msgspec.Struct, frozen=True):
    """To a worker: start nothing more."""


class WorkerReady(msgspec.Struct, frozen=True):
    """From a worker: the environment is loaded."""


class WorkerRefused(msgspec.Struct, frozen=True):
    """From a worker: it cannot continue, and neither can the others."""

    reason: str
    is_config: bool


class WorkerHeartbeat(msgspec.Struct, frozen=True):
    """From a worker, every few seconds: its event loop turns."""


class WorkerLogLine(msgspec.Struct, frozen=True):
    """From a worker: a record for the log."""

    level: int
    text: str
    logger: str
    file_only: bool = False


class WorkerPrinted(msgspec.Struct, frozen=True):
    """From a worker: a line that was printed."""

    text: str


class WorkerEvents(msgspec.Struct, frozen=True):
    """From a worker: events for the run's listeners, encoded by themselves: they are many, and pickling them
    takes five times as long."""

    events: bytes


class RunFile(msgspec.Struct, frozen=True):
    """From a worker on another machine: a file for the run's folder."""

    path: str
    data: bytes


class UnitResult(msgspec.Struct, frozen=True):
    """From a worker: the rows of a unit, to store. Empty if it was not started."""

    number: int
    rollouts: bytes
    """What the rows were made of; empty if no listener wants it or it cannot be pickled."""
    rows: Sequence[bytes]


WorkerFrame = (
    StartWorker
    | PlayUnit
    | ShareTools
    | DrainWorker
    | WorkerReady
    | WorkerRefused
    | WorkerHeartbeat
    | WorkerLogLine
    | WorkerPrinted
    | WorkerEvents
    | UnitResult
    | Unpack
    | MissingBundles
    | BundlePiece
    | Unpacked
    | RunFile
)


class FrameWriter:
    """Writes frames: all those of a few milliseconds at once, since every write wakes the reader."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self._waiting: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None

    def send(self, frame: WorkerFrame) -> None:
        data = pickle.dumps(frame, pickle.HIGHEST_PROTOCOL)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BATCH_SECONDS, self.flush)
        self._waiting += (len(data).to_bytes(LENGTH_BYTES, "big"), data)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        if waiting and not self.writer.is_closing():
            self.writer.write(b"".join(waiting))

    def close(self) -> None:
        self.flush()
        self.writer.close()


async def read_frame(reader: asyncio.StreamReader) -> Any:
    """The next frame, or None when the other end is gone."""
    try:
        length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        return pickle.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, OSError):  # a link that was cut times out
        return None


def pack_unit(unit: Unit) -> bytes:
    try:
        return pickle.dumps(unit, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise unpicklable_error(unit[0].task.id, error) from error


def unpack_unit(frame: PlayUnit) -> Unit:
    try:
        unit: Unit = pickle.loads(frame.unit)
    except Exception as error:
        raise unpicklable_error(frame.task, error) from error
    return unit


def unpicklable_error(task: TaskId, error: Exception) -> ConfigError:
    return ConfigError(
        f"Task {task!r} cannot be sent to a worker process ({type(error).__name__}: {error}); leave out -w."
    )


def pack_rollouts(rollouts: Sequence[Rollout]) -> bytes:
    """Without their tasks, which the run has. Nothing, if they hold what cannot be pickled."""
    try:
        return pickle.dumps([strip_task(each) for each in rollouts], pickle.HIGHEST_PROTOCOL)
    except Exception:
        return b""


def strip_task(rollout: Rollout) -> Rollout:
    columns = to_json_value(rollout.columns) if rollout.columns else rollout.columns
    return msgspec.structs.replace(rollout, task=Task(id=rollout.task.id), columns=columns)


def unpack_rollouts(frame: UnitResult, unit: Unit) -> list[tuple[Rollout, RolloutLine]]:
    """The rollouts of a unit and their lines; those that did not travel are rebuilt from their rows."""
    tasks = {slot.number: slot.task for slot in unit}
    if frame.rollouts:
        with suppress(Exception):  # a value that can be pickled and not be made again
            rollouts: Sequence[Rollout] = pickle.loads(frame.rollouts)
            whole = [msgspec.structs.replace(each, task=tasks[each.number]) for each in rollouts]
            return [(rollout, rollout_line(rollout)) for rollout in whole]
    lines = [line for row in frame.rows if (line := read_line(row)) is not None]
    return [(rollout_from_line(line, tasks[line.rollout]), line) for line in lines]


def rollout_from_line(line: RolloutLine, task: Task) -> Rollout:
    """A rollout without its conversation, which only the row has then."""
    start, end = line.timing.start_time, line.timing.start_time + line.timing.total
    return Rollout(
        task=task,
        number=line.rollout,
        outcome=line.outcome,
        trace=Trace(stop_condition=line.stop_condition),
        timing=Timing(Span(start, start), Span(start, end), Span(end, end), end),
        usage=line.token_usage,
        score=None if line.reward is None else Score(line.reward, line.metrics),
        failure=failure_from_line(line),
    )


def failure_from_line(line: RolloutLine) -> Failure | None:
    error = line.error
    return (
        None if error is None else Failure(error.error, error.message, error.phase, location=error.location)
    )


def pack_events(events: Sequence[Event]) -> bytes:
    return EVENT_ENCODER.encode(events)


def unpack_events(frame: WorkerEvents) -> Sequence[WorkerEvent]:
    return EVENT_DECODER.decode(frame.events)


def strip_content(event: Event) -> Event:
    """A model call as a display needs it: what was said travels once, with the finished rollout."""
    if not isinstance(event, ModelCalled):
        return event
    call = event.call
    reply = None if call.reply is None else Reply({}, call.reply.finish_reason, call.reply.usage)
    return ModelCalled(
        event.key, msgspec.structs.replace(call, messages=(), sampling={}, tools=(), reply=reply)
    )
