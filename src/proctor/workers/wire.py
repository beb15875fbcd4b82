"""What a run and its worker processes say to each other, and how it is framed.

Values are pickled: both ends are the same program of the same user, joined by a socket nobody else has, and
tasks may hold whatever an environment put there. Knows nothing of processes.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.config.schema import EvalConfig
from proctor.engine.plan import Unit
from proctor.engine.player import Rules
from proctor.errors import ConfigError
from proctor.events import Event, ModelCalled
from proctor.host.packages import Found
from proctor.report import Line
from proctor.rollout import Rollout
from proctor.store.rows import as_json
from proctor.task import Task
from proctor.trace import Message, ModelCall, Reply, ToolSpec, Trace

LENGTH_BYTES = 8


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """To a worker, first: what to load and how to play."""

    number: int
    found: Found
    config: EvalConfig
    endpoint: Endpoint
    rules: Rules
    tools: Sequence[ToolSpec] = ()
    answered: bool = False
    """The model has answered somebody, so a refusal now means one rollout and not the run."""


class Play(msgspec.Struct, frozen=True):
    """To a worker: play this unit, and call it by this number."""

    number: int
    unit: Unit


class Share(msgspec.Struct, frozen=True):
    """To a worker: rows need not repeat these tools any more."""

    tools: Sequence[ToolSpec]


class Stop(msgspec.Struct, frozen=True):
    """To a worker: start nothing more."""


class Ready(msgspec.Struct, frozen=True):
    """From a worker: the environment is loaded."""


class Refused(msgspec.Struct, frozen=True):
    """From a worker: it cannot go on, and neither can the others."""

    reason: str
    is_config: bool


class Alive(msgspec.Struct, frozen=True):
    """From a worker, every few seconds: its event loop turns."""


class Said(msgspec.Struct, frozen=True):
    """From a worker: a line for the log."""

    level: int
    text: str


class Happened(msgspec.Struct, frozen=True):
    """From a worker: what the run's listeners want to hear."""

    events: Sequence[Event]


class Played(msgspec.Struct, frozen=True):
    """From a worker: what became of a unit, with the rows to store. Nothing, if it was not started."""

    number: int
    rollouts: Sequence[Rollout]
    rows: Sequence[bytes]
    lines: Sequence[Line]


Frame = Start | Play | Share | Stop | Ready | Refused | Alive | Said | Happened | Played


async def read_frame(reader: asyncio.StreamReader) -> Any:
    """The next frame, or None when the other end is gone."""
    try:
        length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        return pickle.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def framed(frame: Frame) -> bytes:
    data = pickle.dumps(frame, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def framed_play(frame: Play) -> bytes:
    try:
        return framed(frame)
    except Exception as error:
        raise ConfigError(
            f"Task {frame.unit[0].task.id!r} cannot be sent to a worker process "
            f"({type(error).__name__}: {error}); leave out -w."
        ) from error


def framed_played(frame: Played) -> bytes:
    """Rollouts may hold what cannot be pickled; they travel as their rows would tell of them then."""
    try:
        return framed(frame)
    except Exception:
        return framed(msgspec.structs.replace(frame, rollouts=[plain(each) for each in frame.rollouts]))


def plain(rollout: Rollout) -> Rollout:
    task, trace = rollout.task, rollout.trace
    return msgspec.structs.replace(
        rollout,
        task=Task(
            id=task.id,
            prompt=tuple(as_json(task.prompt)),
            answer=as_json(task.answer),
            info=as_json(task.info),
            columns=as_json(task.columns),
            env=task.env,
            template=task.template,
            args=as_json(task.args),
        ),
        trace=Trace(
            as_json(trace.prompt),
            as_json(trace.completion),
            [plain_call(call) for call in trace.calls],
            trace.stop_condition,
            trace.truncated,
        ),
        columns=as_json(rollout.columns),
    )


def plain_call(call: ModelCall) -> ModelCall:
    messages: Sequence[Message] = as_json(list(call.messages))
    sampling: Mapping[str, Any] = as_json(call.sampling)
    return msgspec.structs.replace(call, messages=messages, sampling=sampling)


def without_content(event: Event) -> Event:
    """A model call as a display needs it: what was said travels once, with the finished rollout."""
    if not isinstance(event, ModelCalled):
        return event
    call = event.call
    reply = None if call.reply is None else Reply({}, call.reply.finish_reason, call.reply.usage)
    return ModelCalled(event.key, msgspec.structs.replace(call, messages=(), tools=(), reply=reply))
