"""Tasks whose environment lives elsewhere: each rollout is played over a channel to its runtime.

To the engine this is an environment like any other. Knows nothing of how a runtime comes about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

import msgspec

from proctor.channel.client import Channel, connect
from proctor.channel.frames import RemoteError
from proctor.channel.grades import decode_failure, read_calls, read_grade, read_hud_prompt, read_prompt
from proctor.contracts import PASS_THRESHOLD, EnvironmentProtocol, Seat, Toolbox, Traits
from proctor.env.rewards import Grade
from proctor.env.template_rollout import MOST_TURNS
from proctor.errors import EnvError, GraderError, RolloutError
from proctor.optional_contracts import (
    EnvironmentFacts,
    check_optional,
    close_optional,
    describe_optional_environments,
    get_capacity,
    set_optional_concurrency,
)
from proctor.rollout import Score
from proctor.runtimes.capabilities import borrow_toolbox
from proctor.runtimes.remote_tools import RemoteTools
from proctor.runtimes.runtime import Provider, Runtime
from proctor.task import Task
from proctor.trace import FileChange, Message, last_assistant_text

CANCEL_SECONDS = 5.0


class RemoteEnvironment:
    """Tasks, and the provider that opens a runtime for each of their rollouts."""

    def __init__(
        self,
        name: str,
        tasks: Sequence[Task],
        provider: Provider,
        *,
        version: str | None = None,
        pass_threshold: float = PASS_THRESHOLD,
        environments: Mapping[str, EnvironmentProtocol] | None = None,
    ) -> None:
        """`environments` are those whose code is on this machine too, by name."""
        self.name = name
        self.version = version
        self.pass_threshold = pass_threshold
        self.provider = provider
        self._tasks = list(tasks)
        self.known = dict(environments or {})
        self._found = EnvironmentFacts()
        """What those environments declare that are known only at the runtime."""
        self._idle: dict[Runtime, list[Channel]] = {}
        """Open connections kept for reuse, by runtime."""

    @property
    def traits(self) -> Traits:
        declared = [environment.traits.capacity for environment in self.known.values()]
        capacities = [*declared, self._found.capacity, get_capacity(self.provider)]
        capacity = min((each for each in capacities if each is not None), default=None)
        return Traits(wants_agent=True, rescores=False, capacity=capacity)

    @property
    def distant_workspaces(self) -> str | None:
        declared = any(getattr(environment, "workspaces", None) for environment in self.known.values())
        is_distant = getattr(self.provider, "is_local", None) is False
        return repr(self.provider) if is_distant and (declared or self._found.has_workspace) else None

    def tasks(self) -> Sequence[Task]:
        return self._tasks

    def open(self, task: Task) -> RemoteSession:
        return RemoteSession(self, task)

    async def check(self) -> None:
        await check_optional(self.provider)
        unknown = {task.env for task in self._tasks} - self.known.keys()
        if unknown:
            self._found = await describe_optional_environments(self.provider, sorted(unknown))

    async def close(self) -> None:
        idle, self._idle = self._idle, {}
        await asyncio.gather(*(channel.close() for channels in idle.values() for channel in channels))
        await close_optional(self.provider)

    def set_concurrency(self, concurrency: int) -> None:
        set_optional_concurrency(self.provider, concurrency)

    # Connections

    async def open_channel(self, runtime: Runtime) -> Channel:
        """A connection kept from before, or a new one."""
        kept = self._idle.get(runtime)
        while kept:
            channel = kept.pop()
            if not channel.wire.is_closed:
                return channel
        return await connect(runtime.url, runtime.token)

    async def release_channel(self, channel: Channel, runtime: Runtime, is_clean: bool) -> None:
        """Keep a connection for the next rollout if the runtime lasts and nothing is left of this one."""
        channel.give_up_seat()
        if is_clean and runtime.lasts and not channel.wire.is_closed:
            self._idle.setdefault(runtime, []).append(channel)
        else:
            await channel.close()


class RemoteSession:
    """One rollout, played over a channel."""

    def __init__(self, environment: RemoteEnvironment, task: Task) -> None:
        self.environment = environment
        self.task = task
        self.where = f"task {task.template!r}"
        self.prompt: list[Message] = []
        self.is_last = True
        self.answer: str | None = None
        self.grade: Grade | None = None
        self.tools: Toolbox | None = None
        self._runtime: Runtime
        self._channel: Channel | None = None
        self._is_clean = False
        """Nothing of the rollout is left on the other side."""
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> RemoteSession:
        try:
            self._runtime = await self._stack.enter_async_context(self.environment.provider(self.task))
            self._channel = await self.environment.open_channel(self._runtime)
            self._check_name(self._channel)
            await self._start(self._channel)
        except BaseException as error:
            if not await self.__aexit__(type(error), error, error.__traceback__):
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._channel is not None:
            self._stack.push_async_callback(self._leave, self._channel)
        return await self._stack.__aexit__(kind, error, trace)

    async def _leave(self, channel: Channel) -> None:
        if not self._is_clean and not channel.wire.is_closed:
            try:
                await self._record_changes(channel)
                async with asyncio.timeout(CANCEL_SECONDS):
                    await channel.wire.ask("tasks.cancel", {})
                self._is_clean = True
            except (RemoteError, ConnectionError, TimeoutError):
                pass
        await self.environment.release_channel(channel, self._runtime, self._is_clean)

    def _check_name(self, channel: Channel) -> None:
        """Two environments may have different templates of the same name."""
        served = channel.greeting.env.get("name")
        if served and self.task.env and served != self.task.env:
            raise EnvError(f"{channel.url} serves {served!r}, but the task belongs to {self.task.env!r}")

    async def _record_changes(self, channel: Channel) -> None:
        """Record changed files of a rollout that will not be graded."""
        if channel.seat is not None and channel.is_peer and self.tools and self.tools.workspace is not None:
            async with asyncio.timeout(CANCEL_SECONDS):
                channel.seat.trace.files = read_file_changes(await channel.wire.ask("workspace.changes", {}))

    async def _start(self, channel: Channel) -> None:
        params: dict[str, Any] = {"id": self.task.template, "args": self.task.args}
        if channel.is_peer:
            params["offers_model"] = True
        frame = await self._ask("tasks.start", params, EnvError)
        if "prompt" not in frame:
            raise EnvError(f"{self.where} was started, but {channel.url} sent no prompt")
        read = read_prompt if channel.is_peer else read_hud_prompt
        self.prompt = read(frame["prompt"], self.where)
        self.is_last = bool(frame.get("last", True))
        self.tools = (
            RemoteTools.of(channel, frame) if channel.is_peer else await borrow_toolbox(channel, self._stack)
        )

    async def _ask(self, method: str, params: dict[str, Any], blamed: type[RolloutError]) -> dict[str, Any]:
        assert self._channel is not None
        try:
            return await self._channel.ask(method, params)
        except RemoteError as error:
            raise decode_failure(error, blamed) from error

    async def play(self, seat: Seat) -> None:
        assert self._channel is not None
        self._channel.seat = seat
        messages = self.prompt
        for _ in range(MOST_TURNS):
            self.answer = None
            self.answer = await seat.drive(messages, self.tools)
            if self.is_last or seat.trace.timed_out:
                return
            frame = await self._ask("tasks.reply", {"answer": self.answer}, EnvError)
            if "prompt" not in frame:
                self._record_grade(frame, seat)
                return
            messages = read_prompt(frame["prompt"], self.where)
            self.is_last = bool(frame.get("last", False))
        raise EnvError(f"{self.where} still yields prompts after {MOST_TURNS} turns")

    async def score(self, seat: Seat) -> Score:
        if self.grade is None:
            answer = last_assistant_text(seat.trace.completion) if self.answer is None else self.answer
            self._record_grade(await self._ask("tasks.grade", {"answer": answer}, GraderError), seat)
        grade = self.grade
        assert grade is not None
        if grade.info or grade.content is not None:
            seat.facts = {**seat.facts, "grade_info": dict(grade.info), "grade_content": grade.content}
        return grade.score

    def _record_grade(self, frame: dict[str, Any], seat: Seat) -> None:
        self.grade = read_grade(frame, self.where)
        self._is_clean = True
        seat.trace.calls.extend(read_calls(frame, self.where))
        seat.trace.files = read_file_changes(frame)


def read_file_changes(frame: Mapping[str, Any]) -> list[FileChange]:
    """The changed files in a frame; none if they cannot be read, since the score counts without them."""
    try:
        return msgspec.convert(frame.get("files") or [], list[FileChange])
    except msgspec.ValidationError:
        return []
