"""Seat: one rollout's recorded way to models.

A call is recorded before it is sent, so what happened survives whatever ends the rollout.
Knows nothing of tasks' content, scoring or stores.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from proctor.contracts import (
    Agent,
    HttpEndpoint,
    HttpEndpointOpener,
    Model,
    PieceListener,
    ReplySource,
    ReplyStore,
    Request,
    Toolbox,
)
from proctor.engine.agent_run import AgentRun
from proctor.engine.desk import RecordedDesk
from proctor.engine.limits import FIRST_REPEAT_SECONDS, RequestRepeats, Throttle
from proctor.engine.model_wait import ModelWait
from proctor.engine.recorded_replies import RecordedReplies
from proctor.errors import EnvError, Failure, ModelError, ModelTimeoutError, RateLimitError
from proctor.events import Event, ModelCalled, RequestDelayed
from proctor.rollout import RecordedPlay, RolloutKey
from proctor.support.deadlines import Deadline
from proctor.trace import Message, ModelCall, Piece, Reply, ToolSpec, Trace, last_assistant_text
from proctor.wires.extra_body import merge_extra_body

Emit = Callable[[Event], None]

LEAVING_SECONDS = 10.0
ENDING_SECONDS = 60.0
"""How long an environment may take from the end of the agent's time to the score."""
TIMEOUT = "timeout"


class RunContext:
    """What all seats of a run share: the evaluated model, its sampling, headers and pace."""

    def __init__(
        self,
        model: Model,
        *,
        sampling: Mapping[str, Any] | None = None,
        headers_from_state: Mapping[str, str] | None = None,
        emit: Emit = lambda _: None,
        pace: Throttle | None = None,
        agent: Agent | None = None,
        leaving_seconds: float = LEAVING_SECONDS,
        gateway: HttpEndpointOpener | None = None,
        request_seconds: float | None = None,
        first_repeat_seconds: float = FIRST_REPEAT_SECONDS,
        replies: ReplyStore | None = None,
    ) -> None:
        self.model = model
        self.agent = agent
        """Works on the tasks of an environment that leaves its turns to an agent."""
        self.leaving_seconds = leaving_seconds
        """How long an agent may take to stop when its time is up."""
        self.gateway = gateway
        """For agents that call the model over HTTP."""
        self.request_seconds = request_seconds
        """What one request may take, with those sent again after the provider failed on it."""
        self.first_repeat_seconds = first_repeat_seconds
        """Wait before the first of those; doubles with each."""
        self.sampling = merge_extra_body(sampling or {})
        self.headers_from_state = dict(headers_from_state or {})
        self.replies = replies
        """Consulted before any model is."""
        self.emit = emit
        self.answered = False
        self.pace = pace or Throttle()
        """Of the evaluated model."""
        self._throttles: dict[int, tuple[Model, Throttle]] = {id(model): (model, self.pace)}

    def throttle(self, model: Model) -> Throttle:
        """The pace of a model. The model is held too, so that its id is not reused."""
        known = self._throttles.get(id(model))
        if known is None:
            known = self._throttles[id(model)] = (model, Throttle())
        return known[1]


class RecordedSeat:
    """The engine's Seat."""

    __slots__ = ("clock", "context", "facts", "key", "replies", "trace", "wait")

    def __init__(
        self, context: RunContext, key: RolloutKey, facts: Mapping[str, Any], clock: Deadline
    ) -> None:
        self.context = context
        self.key = key
        self.facts = facts
        self.clock = clock
        """Of the rollout; while an agent works, it is the agent's."""
        self.trace = Trace()
        self.wait = ModelWait()
        store = context.replies
        self.replies: ReplySource | None = None if store is None else store.for_rollout(key)

    def take_over(self, recorded: RecordedPlay) -> None:
        """Continue from a rollout as it was played before: helpers are asked only what they were not asked
        then."""
        self.trace = recorded.trace
        self.replies = RecordedReplies(recorded.helper_calls)

    @property
    def model_name(self) -> str:
        """Of the evaluated model."""
        return self.context.model.name

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        sampling: Mapping[str, Any] | None = None,
        role: str = "agent",
        model: Model | None = None,
        pieces: PieceListener | None = None,
    ) -> Reply:
        context = self.context
        own = merge_extra_body(sampling) if sampling else {}
        if role == "agent" and model is None:
            merged = {**own, **context.sampling} if own else context.sampling
        else:
            merged = own
        model = model or context.model
        messages = tuple(messages)
        request = Request(messages, tools, merged, self.headers(), self.key[0], pieces)
        throttle = context.pace if model is context.model else context.throttle(model)
        call = ModelCall(role, model.name, messages, merged, time.time(), tools)
        if self.replies is not None and (known := self.replies.find(call, model)) is not None:
            return self.reuse(call, known, pieces)
        loop = self.clock.loop
        self.wait.begin(loop.time())
        try:
            reply = await self.send(call, model, request, throttle)
        except ModelError as error:
            self.wait.end_failed(error, loop.time())
            raise
        except BaseException:
            if not self.clock.expired:  # else the time was up while it waited
                self.wait.end_cancelled(loop.time())
            raise
        self.wait.end_answered(loop.time())
        if self.replies is not None:
            self.replies.keep(call, reply)
        return reply

    def reuse(self, call: ModelCall, reply: Reply, pieces: PieceListener | None) -> Reply:
        """Record a call whose reply is known."""
        call.reply, call.reused = reply, True
        self.trace.calls.append(call)
        self.context.answered = True
        if pieces is not None and reply.text:
            pieces(Piece("text", reply.text))
        self.context.emit(ModelCalled(self.key, call))
        return reply

    async def send(self, call: ModelCall, model: Model, request: Request, throttle: Throttle) -> Reply:
        """Send a request until it is answered or refused, or sending it again is no use."""
        trace = self.trace  # an agent that is left behind keeps writing to its own
        resends = 0
        repeats: RequestRepeats | None = None
        while True:
            trace.calls.append(call)
            try:
                if throttle.semaphore is None:
                    return await self.exchange(call, model, request, throttle)
                async with throttle.semaphore:
                    call.started_at = time.time()
                    return await self.exchange(call, model, request, throttle)
            except RateLimitError as error:
                wait = throttle.refused(error, resends)
                if wait is None or request.is_begun:
                    raise
                self._delay(wait, error)
                resends += 1
            except ModelError as error:
                context = self.context
                repeats = repeats or RequestRepeats(context.request_seconds, context.first_repeat_seconds)
                wait = repeats.next_wait(error, call.seconds)
                if wait is None or request.is_begun:
                    raise
                self._delay(wait, error)
            await asyncio.sleep(wait)
            call = ModelCall(call.role, call.model, call.messages, call.sampling, time.time(), call.tools)

    def _delay(self, seconds: float, error: ModelError) -> None:
        self.wait.note_failure(error)
        self.context.emit(RequestDelayed(self.key, seconds, Failure.of(error)))

    async def exchange(self, call: ModelCall, model: Model, request: Request, throttle: Throttle) -> Reply:
        started = time.perf_counter()
        throttle.in_flight += 1
        try:
            reply = await model.complete(request)
        except ModelError as error:
            call.failure = Failure.of(error)
            raise
        except asyncio.CancelledError:
            call.failure = Failure("Cancelled", "the rollout ended before the model answered")
            raise
        except Exception as error:  # a model that breaks its contract is still a failed model
            call.failure = Failure.of(error)
            raise ModelError(f"{model.name} raised {type(error).__name__}: {error}") from error
        else:
            call.reply = reply
            self.context.answered = True
            throttle.answered()
            return reply
        finally:
            throttle.in_flight -= 1
            call.seconds = time.perf_counter() - started
            self.context.emit(ModelCalled(self.key, call))

    async def drive(self, messages: Sequence[Message], toolbox: Toolbox | None = None) -> str:
        agent = self.context.agent
        if agent is None:
            raise EnvError("this environment needs an agent, and none was chosen")
        if self.trace.timed_out:
            return ""
        desk = RecordedDesk(self, messages, toolbox, self.context.gateway)
        run = AgentRun(desk, agent, self.clock, self.context.leaving_seconds)
        try:
            if await run.is_done_in_time():
                return self._note_answer(run.answer())
        except asyncio.CancelledError:  # of the whole run, or by the environment
            await self.dismiss(run)
            raise
        return self._note_answer(await self.cut_off(run))

    def _note_answer(self, answer: str) -> str:
        self.trace.answers.append(answer)
        return answer

    def open_endpoint(self, max_requests: int | None = None) -> AbstractAsyncContextManager[HttpEndpoint]:
        gateway = self.context.gateway
        if gateway is None:
            raise EnvError("this run has no gateway, so the model cannot be reached over HTTP")
        return gateway.open(self, max_requests)

    async def cut_off(self, run: AgentRun) -> str:
        """The agent's time is up: cancel it, and take what it has so far as its answer.

        Raises ModelTimeoutError if it was the model that used the time up.
        """
        failure = self.blame_model()
        await self.dismiss(run)
        trace = self.trace
        trace.timed_out, trace.stop_condition = True, TIMEOUT
        self.clock.move(ENDING_SECONDS)
        if failure is not None:
            raise failure
        return run.late_answer() or last_assistant_text(trace.completion)

    def blame_model(self) -> ModelTimeoutError | None:
        """The model's failure, if the rollout's time, which is up now, was spent waiting for it."""
        limit = self.clock.seconds or 0.0
        return self.wait.blame(self.clock.loop.time(), limit, self.context.model.name)

    async def dismiss(self, run: AgentRun) -> None:
        if not await run.dismiss():
            self.trace = self.trace.snapshot()

    def headers(self) -> dict[str, str]:
        headers = {}
        for name, key in self.context.headers_from_state.items():
            fact = self.facts.get(key)
            if fact is not None:
                headers[name] = str(fact) if type(fact) is int else to_header_value(str(fact))
        return headers


def to_header_value(text: str) -> str:
    """State may hold any text, and a line break would end the header."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)
