"""An environment that is played in its own process, by its own framework.

The child plays and scores; each request of its model comes back here and is answered at the rollout's seat,
so that it is recorded, paced, retried and counted like any other. Knows nothing of frameworks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from itertools import count
from types import TracebackType
from typing import Any, Literal, TypeVar, cast

import msgspec

from proctor.contracts import PASS_THRESHOLD, Seat, Session, Traffic, Traits
from proctor.dialects.failures import explain_loading
from proctor.dialects.process import (
    CallConnection,
    ChildCommand,
    ForeignError,
    ForeignProcess,
    RefusedRequestError,
)
from proctor.env.gold import Gold, answer_text
from proctor.env.parsers import Parser, ThinkParser
from proctor.env.xml_parser import XMLParser
from proctor.errors import ConfigError, EnvError, EnvLostError, GraderError, ModelError, RolloutError
from proctor.gateway.failures import refusal_of
from proctor.gateway.session import GatewaySession
from proctor.rollout import Score, require_finite_number
from proctor.task import Task, TaskSequence
from proctor.wires import chat_server
from proctor.wires.errors import GatewayRefusedError

T = TypeVar("T")

PAGE = 256
"""Tasks that are read at once."""


class AnswerForm(msgspec.Struct, kw_only=True):
    """How an environment wants answers to be written."""

    kind: Literal["xml", "think"]
    fields: list[list[str]] = []
    """Of XML: the elements, each with its alternative names."""
    answer_field: str = "answer"

    def to_parser(self) -> Parser:
        """A parser of ours for the same form."""
        if self.kind == "think":
            return ThinkParser()
        fields = [tuple(names) if len(names) > 1 else names[0] for names in self.fields]
        return XMLParser(fields, answer_field=self.answer_field)


class ChildDescription(msgspec.Struct, kw_only=True):
    """What a child reports about its environment once that is loaded."""

    size: int
    """Number of tasks."""
    version: str | None = None
    """Of the framework."""
    grouped: bool = False
    pass_threshold: float = PASS_THRESHOLD
    wants_endpoint: bool = False
    """Its code may want an HTTP client for the model, beside the calls of the framework."""
    rescores: bool = True
    """It can score a rollout again without playing it again."""
    sampling: dict[str, Any] = {}
    checks: bool = False
    """It has a `check`, for what loading does not show."""
    parser: AnswerForm | None = None
    details: dict[str, Any] = {}
    """For people: the classes it is made of, and the like."""


class PlayedRollout(msgspec.Struct, kw_only=True):
    """What a child reports about a rollout that it has played."""

    prompt: list[dict[str, Any]] | None = None
    completion: list[dict[str, Any]] | None = None
    stop_condition: str | None = None
    truncated: bool = False
    error: dict[str, Any] | None = None
    """Why it could not be played, as the framework recorded it."""


class ScoredRollout(msgspec.Struct, kw_only=True):
    """What a child reports about the score of a rollout."""

    reward: float | None = None
    metrics: dict[str, float] = {}
    state: dict[str, Any] = {}
    """Of the framework, as far as it can be written as JSON."""
    error: dict[str, Any] | None = None


class ForeignTasks(TaskSequence):
    """The tasks of a foreign environment, read page by page."""

    def __init__(self, process: ForeignProcess, size: int) -> None:
        self._process = process
        self._size = size
        self._pages: dict[int, list[Task]] = {}

    def __len__(self) -> int:
        return self._size

    def build(self, number: int) -> Task:
        page = number // PAGE
        if page not in self._pages:
            rows = self._process.read("tasks", start=page * PAGE, stop=min(self._size, (page + 1) * PAGE))
            self._pages[page] = convert_answer(rows, list[Task])
        return self._pages[page][number % PAGE]


class ForeignEnvironment:
    """Plays each rollout in the child."""

    def __init__(self, name: str, command: ChildCommand) -> None:
        self.name = name
        self.process = ForeignProcess(command, self._answer)
        self.sessions: dict[int, ForeignSession] = {}
        self._numbers = count(1)
        self.process.start()
        try:
            self.child = convert_answer(self.process.described, ChildDescription)
        except BaseException:
            self.process.kill()
            raise

    @property
    def traits(self) -> Traits:
        return Traits(grouped=self.child.grouped, rescores=self.child.rescores)

    @property
    def pass_threshold(self) -> float:
        return self.child.pass_threshold

    @property
    def parser(self) -> Parser | None:
        """For `proctor env check`, which writes right answers in its form."""
        return None if self.child.parser is None else self.child.parser.to_parser()

    @property
    def sampling_args(self) -> Mapping[str, Any]:
        return self.child.sampling

    def tasks(self) -> Iterable[Task]:
        return ForeignTasks(self.process, self.child.size)

    def open(self, task: Task) -> ForeignSession:
        return ForeignSession(self, next(self._numbers), task)

    async def score_group(self, played: Sequence[tuple[Session, Seat]]) -> list[Score | RolloutError]:
        sessions = [cast(ForeignSession, session) for session, _ in played]
        connections = [each.connection for each in sessions if each.connection is not None]
        if any(connection is not connections[0] for connection in connections):
            raise EnvLostError(f"a process of {self.name} ended, and with it rollouts of the group")
        results = await connections[0].call("score_group", {"sessions": [each.number for each in sessions]})
        found: list[Score | RolloutError] = []
        for (session, seat), result in zip(played, convert_answer(results, list[Any]), strict=True):
            try:
                found.append(cast(ForeignSession, session).take_score(seat, result))
            except RolloutError as error:
                found.append(error)
        return found

    async def check(self) -> None:
        """Loading has shown that it can be played, unless the child says otherwise."""
        if not self.child.checks:
            return
        try:
            await asyncio.to_thread(self.process.read, "check")
        except ForeignError as error:
            raise explain_loading(self.name, self.process.command.python, error.details) from error

    async def close(self) -> None:
        await self.process.close()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Set attributes in the child, as its framework does it."""
        try:
            self.process.read("configure", settings=dict(settings))
        except ForeignError as error:
            raise ConfigError(f"{self.name} does not take these settings: {error}") from error
        # A child that is started later, because this one died, must have them too.
        self.process.command.params["settings"] = {
            **self.process.command.params.get("settings", {}),
            **settings,
        }

    def set_concurrency(self, concurrency: int) -> None:
        self.process.command.params["concurrency"] = concurrency
        self.process.read("set_concurrency", concurrency=concurrency)

    def gold(self, task: Task) -> Gold:
        return answer_text(task.answer)

    async def _answer(self, method: str, params: msgspec.Raw) -> Any:
        """A request of the child: `complete` asks the model of one rollout."""
        if method != "complete":
            raise RefusedRequestError(404, "not_found", f"There is no method {method!r}.")
        asked = msgspec.json.decode(params, type=ModelRequestFrame)
        session = self.sessions.get(asked.session)
        if session is None or session.gateway is None:
            raise RefusedRequestError(401, "key", "The rollout has ended, and cannot ask the model any more.")
        return await session.complete(asked)


class ModelRequestFrame(msgspec.Struct):
    """The child asks a model, in the shape of the chat completions API."""

    session: int
    body: msgspec.Raw
    facts: dict[str, Any] = {}
    """Of the rollout's state, for headers."""


class ForeignSession:
    """One rollout that the child plays."""

    def __init__(self, env: ForeignEnvironment, number: int, task: Task) -> None:
        self.env = env
        self.number = number
        self.task = task
        self.gateway: GatewaySession | None = None
        self.seat: Seat | None = None
        self.connection: CallConnection | None = None
        """To the process that plays it, the only one that can score it."""

    async def __aenter__(self) -> ForeignSession:
        self.env.sessions[self.number] = self
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gateway, self.gateway = self.gateway, None
        del self.env.sessions[self.number]
        if gateway is not None:
            await gateway.close()
        if self.connection is not None and self.connection.end is None:
            with suppress(EnvLostError):  # then there is nothing to forget
                await self.connection.call("forget", {"session": self.number})

    async def play(self, seat: Seat) -> None:
        """Raises what ended the rollout: the model's failure if it was that, else the environment's."""
        seat.facts = {**seat.facts, **self.task.columns}
        self.seat = seat
        gateway = self.gateway = GatewaySession(seat, find_model_name(seat), None)
        traffic = [gateway.traffic]
        async with AsyncExitStack() as stack:
            request: dict[str, Any] = {"session": self.number, "task": self.task.id, "model": gateway.model}
            if self.env.child.wants_endpoint:
                endpoint = await stack.enter_async_context(seat.open_endpoint())
                traffic.append(endpoint.traffic)
                request["endpoint"] = {"url": f"{endpoint.url}/v1", "key": endpoint.key}
            self.connection = await self.env.process.connect()
            answer = await self.connection.call("play", request)
        self._take_played(seat, convert_answer(answer, PlayedRollout), traffic)

    async def score(self, seat: Seat) -> Score:
        assert self.connection is not None
        return self.take_score(seat, await self.connection.call("score", {"session": self.number}))

    async def complete(self, asked: ModelRequestFrame) -> Any:
        """The model's reply, in the shape of the chat completions API."""
        assert self.gateway is not None
        assert self.seat is not None
        self.seat.facts = {**self.seat.facts, **asked.facts}
        try:
            request = chat_server.WIRE.decode_request(bytes(asked.body))
            return chat_server.WIRE.encode_reply(request, await self.gateway.complete(request))
        except GatewayRefusedError as error:
            refusal = error.refusal
        except ModelError as error:
            refusal = refusal_of(error)
        raise RefusedRequestError(refusal.status, refusal.code, refusal.message)

    def take_score(self, seat: Seat, answer: Any) -> Score:
        result = convert_answer(answer, ScoredRollout)
        seat.facts = {**seat.facts, **result.state}
        if result.error is not None:
            raise GraderError(describe_foreign(result.error))
        reward = require_finite_number(result.reward, "the reward")
        return Score(reward, result.metrics)

    def _take_played(self, seat: Seat, played: PlayedRollout, traffic: Sequence[Traffic]) -> None:
        trace = seat.trace
        if played.prompt is not None:
            trace.prompt = played.prompt
        if played.completion is not None:
            trace.completion = played.completion
        trace.stop_condition = played.stop_condition
        trace.truncated = trace.truncated or played.truncated
        if played.error is None:
            return
        for each in traffic:
            if each.failure is not None:
                raise each.failure
        if played.error.get("is_model"):
            raise ModelError(describe_foreign(played.error))
        raise EnvError(describe_foreign(played.error))


def convert_answer(answer: Any, kind: type[T]) -> T:
    """What a child answered, as the type that is expected here."""
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise EnvError(f"the environment's process answered something unexpected: {error}") from error


def describe_foreign(error: Mapping[str, Any]) -> str:
    return str(ForeignError(error))


def find_model_name(seat: Seat) -> str:
    """The evaluated model's name, if the seat knows it."""
    return str(getattr(seat, "model_name", ""))
