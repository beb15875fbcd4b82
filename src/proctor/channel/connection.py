"""One connection to a served environment: what it asks, and what it is answered.

    hello         who is there, what it lends; with a session_id, go on with that session
    tasks.list    the templates
    tasks.start   begin a task                          → its prompt
    tasks.grade   the answer                            → its score
    tasks.cancel  give the task up
    bye           the same, and good-bye
    tunnel.open   as the first frame only: from here on, the bytes of a capability

and between peers that both say `"speaks"` in their hello:

    tasks.reply   the answer to one of several turns    → the next prompt, or the score
    tools.call    use a tool                            → what it gave
    workspace.run run a command in the task's workspace
    model.complete   asked by the environment: have the driver's model answer, for a judge

Calls that run the environment's own code run beside the reading, so that a cancel reaches them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from proctor.channel.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    TASK_FAILED,
    UNAUTHORIZED,
    Id,
)
from proctor.channel.grades import failure_data, grade_frame, prompt_of
from proctor.channel.served_seat import ServedSeat
from proctor.channel.server import Held, RefusedError, Served
from proctor.channel.splice import End
from proctor.channel.wire import Wire
from proctor.contracts import Door
from proctor.env.performance import Performance
from proctor.env.rewards import Grade
from proctor.errors import EnvError, did_you_mean
from proctor.task import minted

log = logging.getLogger("proctor")

Params = Mapping[str, Any]
Handler = Callable[[Params], Awaitable[Params]]

INTERRUPTS = ("tasks.cancel", "bye")
TUNNEL = "tunnel.open"
TOKEN_WANTED = "this server wants its token; send it as `token` in hello"


class Connection:
    """Speaks for one session at a time."""

    def __init__(self, served: Served, wire: Wire, open_connections: set[Connection]) -> None:
        self.served = served
        self.wire = wire
        self.session = served.new_session()
        self.is_peer = False
        """The other side says that it speaks what only we do."""
        self._all = open_connections
        self._all.add(self)
        self._allowed = not served.wants_token
        self._first = True
        self._working: dict[asyncio.Task[None], tuple[Id, str]] = {}
        self._ending: asyncio.Task[None] | None = None
        self._alone: dict[str, Handler] = {
            "tasks.start": self.start,
            "tasks.grade": self.grade,
            "tasks.reply": self.reply,
        }
        self._together: dict[str, Handler] = {"tools.call": self.call, "workspace.run": self.run_command}

    # Owner of the wire

    def asked(self, id: Id, method: str, params: Any) -> None:  # noqa: A002
        first, self._first = self._first, False
        if params is None:
            params = {}
        if not isinstance(params, Mapping):
            self.wire.refuse(id, INVALID_PARAMS, f"{method}: 'params' must be an object")
        elif method == TUNNEL and first:
            here = End(self.wire.transport)
            self.wire.take_over(here)
            self._begin(id, method, self._tunnel(id, params, here))
        elif method == "hello":
            self._hello(id, params)
        elif not self._allowed:
            self.wire.refuse(id, UNAUTHORIZED, TOKEN_WANTED)
        elif method in INTERRUPTS:
            self._ending = asyncio.ensure_future(self._interrupt(id, method))
        elif method == "tasks.list":
            self.wire.answer(id, {"tasks": self.served.listing()})
        elif (handler := self._alone.get(method)) is not None:
            self._work(id, method, handler, params, alone=True)
        elif (handler := self._together.get(method)) is not None:
            self._work(id, method, handler, params, alone=False)
        else:
            self.wire.refuse(id, METHOD_NOT_FOUND, f"method not found: {method}")

    def lost(self, error: Exception | None) -> None:  # noqa: ARG002
        """A start may go on, and its task is parked; the result of anything else is nobody's."""
        self._all.discard(self)
        starting = [task for task, (_, method) in self._working.items() if method == "tasks.start"]
        for task in self._working:
            if task not in starting:
                task.cancel()
        if starting:
            starting[0].add_done_callback(lambda _: self.served.park(self.session))
        else:
            self.served.park(self.session)

    # Answers

    def _hello(self, id: Id, params: Params) -> None:  # noqa: A002
        """Answered at once, unless what is lent has to be started first."""
        try:
            self.hello(params)
        except RefusedError as refusal:
            self.wire.refuse(id, refusal.code, str(refusal))
            return
        if self.is_peer or self.served.is_lending:
            self.wire.answer(id, self.served.greeting(self.session, self.is_peer))
        else:
            self._greeting = asyncio.ensure_future(self._greet(id))

    async def _greet(self, id: Id) -> None:  # noqa: A002
        await self.served.lend()
        self.wire.answer(id, self.served.greeting(self.session, self.is_peer))

    def _work(self, id: Id, method: str, handler: Handler, params: Params, alone: bool) -> None:  # noqa: A002
        """Run the environment's own code: a start or a grade by itself, tools side by side."""
        running = self._working.values()
        if running and (alone or any(other in self._alone for _, other in running)):
            self.wire.refuse(id, INVALID_REQUEST, f"{method}: a task call is still running")
            return
        self._begin(id, method, self._worked(id, method, handler, params))

    def _begin(self, id: Id, method: str, work: Any) -> None:  # noqa: A002
        task = asyncio.ensure_future(work)
        self._working[task] = (id, method)
        task.add_done_callback(self._working.pop)

    async def _worked(self, id: Id, method: str, handler: Handler, params: Params) -> None:  # noqa: A002
        try:
            value = await handler(params)
        except RefusedError as refusal:
            self.wire.refuse(id, refusal.code, str(refusal))
        except Exception as error:
            log.debug("%s failed", method, exc_info=True)
            data = failure_data(error) if self.is_peer else None
            self.wire.refuse(id, TASK_FAILED, str(error) or type(error).__name__, data)
        else:
            self.wire.answer(id, value)

    async def _interrupt(self, id: Id, method: str) -> None:  # noqa: A002
        """End what runs, give the task up; a bye ends the connection too."""
        running = list(self._working.items())
        for task, (asked, _) in running:
            task.cancel()
            self.wire.refuse(asked, TASK_FAILED, f"{method} interrupted the task")
        if running:
            await asyncio.wait([task for task, _ in running])
        await self.served.drop(self.session)
        self.wire.answer(id, {"goodbye": True} if method == "bye" else {"cancelled": True})
        if method == "bye":
            self.wire.close()

    # What can be asked

    def hello(self, params: Params) -> None:
        if not self.served.is_allowed(params.get("token")):
            raise RefusedError(UNAUTHORIZED, TOKEN_WANTED)
        self._allowed = True
        for name in ("workspace_routes", "connections"):
            if not isinstance(params.get(name, []), list):
                raise RefusedError(INVALID_PARAMS, f"hello: '{name}' must be a list")
        session = params.get("session_id")
        if session is not None and session != self.session:
            if not isinstance(session, str):
                raise RefusedError(INVALID_PARAMS, "hello: 'session_id' must be a string")
            self.served.resume(session)
            self.served.park(self.session)
            self.session = session
        self.is_peer = "speaks" in params

    async def start(self, params: Params) -> Params:
        template, args = params.get("id"), params.get("args")
        args = {} if args is None else args
        if not isinstance(template, str):
            raise RefusedError(INVALID_PARAMS, "tasks.start: 'id' must be a string")
        if not isinstance(args, dict):
            raise RefusedError(INVALID_PARAMS, "tasks.start: 'args' must be an object")
        environment = self.served.environment
        if template not in environment.templates:
            near = did_you_mean(template, environment.templates) if self.is_peer else ""
            raise RefusedError(INVALID_PARAMS, f"unknown task: {template!r}{near}")
        await self.served.drop(self.session)
        performance = environment.perform(minted(environment.name, template, args))
        performance.seat = seat = ServedSeat(self._ask if params.get("offers_model") else None)
        try:
            prompt = await performance.begin()
        except BaseException:
            await performance.close()
            raise
        self.served.hold(self.session, Held(performance, seat))
        frame: dict[str, Any] = {"prompt": prompt_of(prompt)}
        if (bindings := performance.exchange.bindings) is not None:
            frame["bindings"] = bindings
        return {**frame, **self._lent(performance)} if self.is_peer else frame

    def _lent(self, performance: Performance) -> Params:
        toolbox = performance.toolbox
        return {
            "last": performance.ends_next,
            "tools": [] if toolbox is None else list(toolbox.tools),
            "workspace": toolbox is not None and toolbox.workspace is not None,
        }

    async def reply(self, params: Params) -> Params:
        """One turn of several: the next prompt, or the score."""
        held = self.served.held(self.session)
        step = await held.performance.reply(answer_in(params))
        if isinstance(step, Grade):
            return await self._finished(held, step)
        return {"prompt": prompt_of(step), "last": held.performance.ends_next}

    async def grade(self, params: Params) -> Params:
        held = self.served.held(self.session)
        answer = answer_in(params)
        self.served.release(held)
        try:
            grade = await held.performance.settle(answer)
        except BaseException:
            await held.performance.close()
            raise
        return await self._finished(held, grade)

    async def _finished(self, held: Held, grade: Grade) -> Params:
        """What a task came to; it is nobody's from here on."""
        self.served.release(held)
        frame = grade_frame(grade, held.performance.metrics() if self.is_peer else None)
        if self.is_peer and (calls := held.seat.told()):
            frame["calls"] = calls
        await held.performance.close()
        return frame

    async def call(self, params: Params) -> Params:
        name, arguments = params.get("name"), params.get("arguments", "")
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise RefusedError(INVALID_PARAMS, "tools.call: 'name' and 'arguments' must be strings")
        toolbox = self.served.held(self.session).performance.toolbox
        if toolbox is None:
            raise RefusedError(INVALID_PARAMS, "tools.call: this environment lends no tools")
        return {"content": await toolbox.call(name, arguments)}

    async def run_command(self, params: Params) -> Params:
        toolbox = self.served.held(self.session).performance.toolbox
        workspace = None if toolbox is None else toolbox.workspace
        if workspace is None:
            raise RefusedError(INVALID_PARAMS, "workspace.run: this task has no workspace")
        try:
            asked = msgspec.convert(params, Command)
        except msgspec.ValidationError as error:
            raise RefusedError(INVALID_PARAMS, f"workspace.run: {error}") from error
        if (asked.door or asked.mounts) and not self._is_here:
            raise RefusedError(
                INVALID_PARAMS, "workspace.run: 'door' and 'mounts' are for callers of this machine"
            )
        ran = await workspace.run(
            asked.command,
            seconds=asked.seconds,
            stdin=asked.stdin,
            variables=asked.variables,
            door=None if asked.door is None else Door(*asked.door),
            mounts=asked.mounts,
        )
        return {"code": ran.code, "output": ran.output}

    @property
    def _is_here(self) -> bool:
        """Whether we speak over a Unix socket, so that their paths are ours."""
        transport = self.wire.transport
        return transport is not None and isinstance(transport.get_extra_info("sockname"), (str, bytes))

    async def _ask(self, method: str, params: Params) -> dict[str, Any]:
        return await self.wire.ask(method, params, prefix="s")

    # Tunnels

    async def _tunnel(self, id: Id, params: Params, here: End) -> None:  # noqa: A002
        """Join the connection with a capability's own server."""
        name = params.get("capability")
        try:
            if not self._allowed and not self.served.is_allowed(params.get("token")):
                raise RefusedError(UNAUTHORIZED, TOKEN_WANTED)
            if not isinstance(name, str):
                raise RefusedError(INVALID_PARAMS, "tunnel.open: 'capability' must be a string")
            host, port = await self.served.address_of(name)
            loop = asyncio.get_running_loop()
            _, there = await loop.create_connection(End, host, port)
        except RefusedError as refusal:
            self.wire.refuse(id, refusal.code, str(refusal))
            self.wire.close()
            return
        except (OSError, EnvError, KeyError) as error:
            self.wire.refuse(id, TASK_FAILED, str(error))
            self.wire.close()
            return
        self.wire.answer(id, {"capability": name})
        here.join(there)
        await here.closed


class Command(msgspec.Struct, frozen=True):
    """What `workspace.run` takes."""

    command: str | list[str]
    seconds: float
    stdin: bytes = b""
    variables: dict[str, str] = {}
    door: tuple[str, str, str, str] | None = None
    """Its url, key, socket and model."""
    mounts: list[str] = []


def answer_in(params: Params) -> str:
    """The answer as text; what is sent as data is read as the JSON it would be."""
    answer = params.get("answer", "")
    if isinstance(answer, str):
        return answer
    if answer is None:
        return ""
    return msgspec.json.encode(answer).decode()
