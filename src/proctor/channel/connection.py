"""One connection to a served environment: its requests, and our answers.

    hello         name, version and capabilities; with a session_id, resume that session
    tasks.list    the templates
    tasks.start   start a task                          → its prompt
    tasks.grade   the answer                            → its score
    tasks.cancel  give the task up
    bye           the same, and close the connection
    tunnel.open   as the first frame only: what follows are the bytes of a capability

and between peers that both send `"speaks"` in their hello:

    tasks.reply   the answer to one of several turns    → the next prompt, or the score
    tools.call    call a tool                           → its result
    workspace.run      run a command in the task's workspace
    workspace.changes  its changed files, if it will not be graded
    model.complete     sent by the environment: have the driver's model answer, for a judge

The environment's own code runs concurrently with reading, so that a cancel reaches it. Every request with an
id is answered exactly once, or the connection ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from proctor.channel.concurrent_methods import CONCURRENT_METHODS
from proctor.channel.frame_stream import FrameConnection
from proctor.channel.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    TASK_FAILED,
    UNAUTHORIZED,
    Id,
)
from proctor.channel.grades import encode_failure, encode_grade, encode_prompt
from proctor.channel.params import Params, check_lists, read_answer_param, read_start_params
from proctor.channel.remote_seat import RemoteSeat
from proctor.channel.served_task import ServedTask
from proctor.channel.server import PARKED_SECONDS, ChannelRefusedError, ServedEnvironment
from proctor.env.rewards import Grade
from proctor.env.template_rollout import TemplateRollout
from proctor.errors import did_you_mean
from proctor.support.join_connections import SplicedConnection, dial
from proctor.task import mint_task
from proctor.trace import Message

log = logging.getLogger("proctor")

Work = Callable[[], Awaitable[Params | None]]

INTERRUPTS = ("tasks.cancel", "bye")
TUNNEL = "tunnel.open"
TOKEN_WANTED = "this server requires its token; send it as `token` in hello"
MOST_AT_ONCE = 256
"""Calls that one connection may have running concurrently."""
STRANGER_BYTES = 64 * 1024
STRANGER_SECONDS = 30.0
"""How much a client may send, and how long it may stay, before it has sent the token."""


class PendingCall:
    """A request that is not answered yet."""

    __slots__ = ("id", "is_answered", "method", "play")

    def __init__(self, id: Id, method: str, play: ServedTask | None = None) -> None:  # noqa: A002
        self.id = id
        self.method = method
        self.play = play
        self.is_answered = False


class ChannelConnection:
    """Serves one session at a time."""

    def __init__(
        self, served: ServedEnvironment, wire: FrameConnection, open_connections: set[ChannelConnection]
    ) -> None:
        self.served = served
        self.wire = wire
        self.session = served.new_session()
        self.is_peer = False
        """The other side speaks our additions to the protocol."""
        self._all = open_connections
        self._all.add(self)
        self._is_allowed = not served.wants_token
        self._is_first = True
        self._is_lost = False
        self._call: PendingCall | None = None
        """The start, reply or grade in progress."""
        self._concurrent: dict[asyncio.Task[None], PendingCall] = {}
        """Tool calls in progress, and what may run beside them: a tunnel or a greeting."""
        self._interrupt: asyncio.Task[None] | None = None
        self._deferred: deque[tuple[Id, str, Any]] = deque()
        """Requests that arrived during a cancel."""
        self._stranger_timer: asyncio.TimerHandle | None = None
        if not self._is_allowed:
            wire.limit(STRANGER_BYTES)
            self._stranger_timer = asyncio.get_running_loop().call_later(STRANGER_SECONDS, wire.close)

    # RequestHandler of the wire

    def handle_request(self, id: Id, method: str, params: Any) -> None:  # noqa: A002
        if self._interrupt is not None:
            self._deferred.append((id, method, params))
            return
        is_first, self._is_first = self._is_first, False
        try:
            self._dispatch(id, method, {} if params is None else params, is_first)
        except ChannelRefusedError as refusal:
            self.wire.refuse(id, refusal.code, str(refusal))

    def _dispatch(self, id: Id, method: str, params: Any, is_first: bool) -> None:  # noqa: A002
        if method == TUNNEL and is_first:
            here = SplicedConnection(self.wire.transport)
            self.wire.take_over(here)
            self._start_work(id, method, lambda: self._tunnel(id, params, here))
        elif not isinstance(params, Mapping):
            raise ChannelRefusedError(INVALID_PARAMS, f"{method}: 'params' must be an object")
        elif method == "hello":
            self._hello(id, params)
        elif not self._is_allowed:
            raise ChannelRefusedError(UNAUTHORIZED, TOKEN_WANTED)
        elif method in INTERRUPTS:
            self._end(id, method)
        elif method == "tasks.list":
            self.wire.answer(id, {"tasks": self.served.list_templates()})
        elif (alone := EXCLUSIVE_METHODS.get(method)) is not None:
            self._check_idle(method)
            alone(self, PendingCall(id, method), params)
        elif (tool := CONCURRENT_METHODS.get(method)) is not None:
            self._check_room(method)
            play = self.served.play_of(self.session)
            self._start_work(id, method, lambda: tool(play.rollout, params, self.wire.is_local))
        else:
            raise ChannelRefusedError(METHOD_NOT_FOUND, f"method not found: {method}")

    def handle_disconnect(self, error: Exception | None) -> None:  # noqa: ARG002
        """A start may continue, and its task is parked; the result of any other call is discarded."""
        self._all.discard(self)
        self._is_lost = True
        self._deferred.clear()
        if self._stranger_timer is not None:
            self._stranger_timer.cancel()
        for task in self._concurrent:
            task.cancel()
        call = self._call
        if call is not None and call.method == "tasks.start":
            asyncio.get_running_loop().call_later(PARKED_SECONDS, self._give_up, call)
            return
        if call is not None:
            self._call = None
            self.served.end_soon(call.play)
        self.served.park(self.session)

    def _give_up(self, call: PendingCall) -> None:
        """Give up a start that has not reached its prompt in that time."""
        if self._call is call:
            self._call = None
            self.served.end_soon(call.play)
            self.served.park(self.session)

    async def close(self) -> None:
        """End everything; the server is shutting down."""
        self.wire.close()
        call, self._call = self._call, None
        for task in self._concurrent:
            task.cancel()
        if call is not None and call.play is not None:
            await call.play.end()

    # Hello

    def _hello(self, id: Id, params: Params) -> None:  # noqa: A002
        """Answer at once, unless capability servers have to be started first."""
        if not self.served.is_allowed(params.get("token")):
            raise ChannelRefusedError(UNAUTHORIZED, TOKEN_WANTED)
        self._allow()
        check_lists(params)
        session = params.get("session_id")
        if session is not None and session != self.session:
            self._resume(session)
        self.is_peer = "speaks" in params
        if self.is_peer or self.served.capabilities.is_open:
            self.wire.answer(id, self.served.greeting(self.session, self.is_peer))
        else:
            self._start_work(id, "hello", self._greet)

    async def _greet(self) -> Params:
        await self.served.capabilities.open()
        return self.served.greeting(self.session, self.is_peer)

    def _allow(self) -> None:
        self._is_allowed = True
        if self._stranger_timer is not None:
            self._stranger_timer.cancel()
            self._stranger_timer = None
            self.wire.limit(None)

    def _resume(self, session: object) -> None:
        if not isinstance(session, str):
            raise ChannelRefusedError(INVALID_PARAMS, "hello: 'session_id' must be a string")
        self._check_idle("hello")
        self.served.resume(session)
        self.served.park(self.session)
        self.session = session

    # Tasks: one call at a time

    def _check_idle(self, method: str) -> None:
        if self._call is not None or (self._tools_in_use() and not self._ends_tools(method)):
            raise ChannelRefusedError(INVALID_REQUEST, f"{method}: a task call is still running")

    def _ends_tools(self, method: str) -> bool:
        """A grade ends the agent's work: an agent that was cut short may have left a tool call running."""
        if method != "tasks.grade":
            return False
        for task in self._tools_in_use():
            call = self._concurrent[task]
            call.is_answered = True
            self.wire.refuse(call.id, TASK_FAILED, f"{method} interrupted the task")
            task.cancel()
        return True

    def start(self, call: PendingCall, params: Params) -> None:
        template, args = read_start_params(params)
        environment = self.served.environment
        if template not in environment.templates:
            near = did_you_mean(template, environment.templates) if self.is_peer else ""
            raise ChannelRefusedError(INVALID_PARAMS, f"unknown task: {template!r}{near}")
        rollout = environment.create_rollout(mint_task(environment.name, template, args))
        seat = RemoteSeat(self._ask if params.get("offers_model") else None)
        self._call = call
        call.play = play = ServedTask(rollout, seat)

        def report(prompt: list[Message], error: BaseException | None) -> None:
            if self._is_over(call, error):
                self.served.hold(self.session, play)
                if not self._answer(call, lambda: self._start_frame(rollout, prompt)) and not self._is_lost:
                    self.served.end_soon(
                        self.served.take_task(self.session)
                    )  # the client will not know of it
            if self._is_lost:
                self.served.park(self.session)

        play.begin(report, after=self.served.take_task(self.session))

    def _start_frame(self, rollout: TemplateRollout, prompt: list[Message]) -> Params:
        frame: dict[str, Any] = {"prompt": encode_prompt(prompt)}
        if (bindings := rollout.exchange.bindings) is not None:
            frame["bindings"] = bindings
        if not self.is_peer:
            return frame
        toolbox = rollout.toolbox
        return {
            **frame,
            "last": rollout.ends_next,
            "tools": [] if toolbox is None else list(toolbox.tools),
            "workspace": toolbox is not None and toolbox.workspace is not None,
        }

    def reply(self, call: PendingCall, params: Params) -> None:
        """Answer one of several turns with the next prompt, or the score."""
        answer = read_answer_param(params)
        call.play = play = self.served.take_or_adopt(self.session)
        self._call = call

        def report(step: list[Message] | Grade, error: BaseException | None) -> None:
            if not self._is_over(call, error):
                return
            if isinstance(step, Grade):
                self._answer(call, lambda: self._grade_frame(play, step))
                return
            self.served.hold(self.session, play)
            self.wire.answer(call.id, {"prompt": encode_prompt(step), "last": play.rollout.ends_next})

        play.reply(answer, report)

    def grade(self, call: PendingCall, params: Params) -> None:
        answer = read_answer_param(params)
        call.play = play = self.served.take_or_adopt(self.session)
        self._call = call

        def report(grade: Grade, error: BaseException | None) -> None:
            if self._is_over(call, error):
                self._answer(call, lambda: self._grade_frame(play, grade))

        play.grade(answer, report)

    def _grade_frame(self, play: ServedTask, grade: Grade) -> Params:
        frame = encode_grade(grade, play.rollout.metrics() if self.is_peer else None)
        if self.is_peer and (calls := play.seat.take_calls()):
            frame["calls"] = calls
        if self.is_peer and (files := play.rollout.changes):
            frame["files"] = files
        return frame

    def _is_over(self, call: PendingCall, error: BaseException | None) -> bool:
        """Whether the ended call succeeded; if not, send its error."""
        self._call = None
        if error is not None:
            self._fail(call, error)
        return error is None

    def _answer(self, call: PendingCall, frame: Callable[[], Params]) -> bool:
        """Whether the result was sent; if it cannot be encoded, send that error instead."""
        try:
            value = frame()
        except Exception as error:
            self._fail(call, error)
            return False
        return self.wire.answer(call.id, value)

    def _fail(self, call: PendingCall, error: BaseException) -> None:
        log.debug("%s failed", call.method, exc_info=error)
        data = encode_failure(error) if self.is_peer else None
        self.wire.refuse(call.id, TASK_FAILED, str(error) or type(error).__name__, data)

    # Cancel and bye

    def _end(self, id: Id, method: str) -> None:  # noqa: A002
        """Stop what runs and give the task up; a bye also closes the connection."""
        call, self._call = self._call, None
        plays = [] if call is None or call.play is None else [call.play]
        if (held := self.served.take_task(self.session)) is not None:
            plays.append(held)
        for play in plays:
            play.stop()
        tasks = self._tools_in_use()
        for running in [*([] if call is None else [call]), *(self._concurrent[task] for task in tasks)]:
            running.is_answered = True
            self.wire.refuse(running.id, TASK_FAILED, f"{method} interrupted the task")
        if not plays and not tasks:
            self._confirm_end(id, method)
            return
        self.wire.pause()
        self._interrupt = asyncio.ensure_future(self._end_all(id, method, plays, tasks))

    async def _end_all(
        self,
        id: Id,  # noqa: A002
        method: str,
        plays: list[ServedTask],
        tasks: list[asyncio.Task[None]],
    ) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*(play.end() for play in plays), *tasks, return_exceptions=True)
        self._interrupt = None
        self.wire.resume()
        self._confirm_end(id, method)
        while self._deferred and self._interrupt is None and not self.wire.is_closed:
            self.handle_request(*self._deferred.popleft())

    def _confirm_end(self, id: Id, method: str) -> None:  # noqa: A002
        self.wire.answer(id, {"goodbye": True} if method == "bye" else {"cancelled": True})
        if method == "bye":
            self.wire.close()

    # Tools: concurrently

    def _tools_in_use(self) -> list[asyncio.Task[None]]:
        return [
            task
            for task, call in self._concurrent.items()
            if call.method in CONCURRENT_METHODS and not call.is_answered
        ]

    def _check_room(self, method: str) -> None:
        if self._call is not None:
            raise ChannelRefusedError(INVALID_REQUEST, f"{method}: a task call is still running")
        if len(self._concurrent) >= MOST_AT_ONCE:
            raise ChannelRefusedError(
                INVALID_REQUEST, f"{method}: {MOST_AT_ONCE} calls are running; wait for one"
            )

    def _start_work(self, id: Id, method: str, work: Work) -> None:  # noqa: A002
        call = PendingCall(id, method)
        task = asyncio.ensure_future(self._run_work(call, work))
        self._concurrent[task] = call
        task.add_done_callback(self._concurrent.pop)

    async def _run_work(self, call: PendingCall, work: Work) -> None:
        value: Params | None = None
        failure: BaseException | None = None
        try:
            value = await work()
        except asyncio.CancelledError as error:
            if call.is_answered or self._is_lost:
                raise
            failure = error
        except BaseException as error:
            failure = error
        if call.is_answered:
            return
        call.is_answered = True
        if isinstance(failure, ChannelRefusedError):
            self.wire.refuse(call.id, failure.code, str(failure))
        elif failure is not None:
            self._fail(call, failure)
        elif value is not None:
            self.wire.answer(call.id, value)

    async def _ask(self, method: str, params: Params) -> dict[str, Any]:
        return await self.wire.ask(method, params, prefix="s")

    # Tunnels

    async def _tunnel(self, id: Id, params: Any, here: SplicedConnection) -> None:  # noqa: A002
        """Join the connection with a capability's own server; close it if that fails."""
        self.wire.pause()  # bytes for the capability wait until it is connected
        try:
            params = params if isinstance(params, Mapping) else {}
            if not self._is_allowed and not self.served.is_allowed(params.get("token")):
                raise ChannelRefusedError(UNAUTHORIZED, TOKEN_WANTED)
            self._allow()
            name = params.get("capability")
            if not isinstance(name, str):
                raise ChannelRefusedError(INVALID_PARAMS, "tunnel.open: 'capability' must be a string")
            there = await dial(*await self.served.address_of(name))
            self.wire.answer(id, {"capability": name})
            here.join(there)
        except ChannelRefusedError as refusal:
            self.wire.refuse(id, refusal.code, str(refusal))
            self.wire.close()
        except Exception as error:
            self.wire.refuse(id, TASK_FAILED, str(error))
            self.wire.close()
        else:
            self.wire.resume()
            await here.closed


EXCLUSIVE_METHODS: dict[str, Callable[[ChannelConnection, PendingCall, Params], None]] = {
    "tasks.start": ChannelConnection.start,
    "tasks.grade": ChannelConnection.grade,
    "tasks.reply": ChannelConnection.reply,
}
"""Methods that run the template itself, and so exclude all others meanwhile."""
