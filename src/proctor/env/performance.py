"""One rollout of a template, on the environment's side: the generator, and what it lends to the agent.

Whoever plays it, an agent in this process or somebody on a connection, has the same few words for it. Knows
nothing of agents, seats' owners or sockets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from proctor.contracts import Seat, Workspace
from proctor.env.exchange import Exchange
from proctor.env.rewards import Grade
from proctor.env.threads import Threads
from proctor.env.tool_env import as_text, find_tool, run_tool, storable, told
from proctor.env.tools import Tool
from proctor.errors import EnvError, GraderError, RolloutError
from proctor.trace import Message, ToolSpec

MOST_TURNS = 1000

_current: ContextVar[Performance | None] = ContextVar("performance", default=None)


def current() -> Performance | None:
    """The performance whose template is running here, if one is."""
    return _current.get()


class Stage(Protocol):
    """Where a template is played."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...
    @property
    def threads(self) -> Threads: ...
    async def start(self) -> None:
        """Have everything ready that all rollouts share."""


class Starts(Protocol):
    """A template, as far as it can be started."""

    def started(self, inputs: Mapping[str, Any]) -> Exchange: ...


class Performance:
    """One rollout of a template: prompts come out, answers go in, and at the end there is a grade."""

    def __init__(self, stage: Stage, template: Starts, inputs: Mapping[str, Any]) -> None:
        self.seat: Seat | None = None
        """The rollout's way to models, once somebody has taken it."""
        self.toolbox = FunctionTools(stage.tools, stage.threads) if stage.tools else None
        self.turns = 0
        self._stage = stage
        self._template = template
        self._inputs = inputs
        self._exchange: Exchange | None = None

    async def begin(self) -> list[Message]:
        """Run up to the first yield: the prompt."""
        await self._stage.start()
        with self._running():
            self._exchange = self._template.started(self._inputs)
            prompt = await self._exchange.begin()
        self.turns = 1
        return prompt

    @property
    def exchange(self) -> Exchange:
        if self._exchange is None:
            raise EnvError("the template has not begun")
        return self._exchange

    @property
    def ends_next(self) -> bool:
        """Whether the next answer is certainly the last one, so that all after it is scoring."""
        return self.exchange.ends_next

    async def reply(self, answer: str) -> list[Message] | Grade:
        """Run up to the next yield: another prompt, or the grade."""
        with self._running():
            step = await self.exchange.reply(answer)
        if not isinstance(step, Grade):
            self.turns += 1
        return step

    async def settle(self, answer: str) -> Grade:
        """The grade for what was answered. Whoever settles has nothing to say to whatever else is asked."""
        with self._running():
            for _ in range(MOST_TURNS):
                step = await self.exchange.reply(answer)
                if isinstance(step, Grade):
                    return step
                answer = ""
        raise GraderError(f"{self.exchange.where} asks on and on instead of yielding a reward")

    def metrics(self) -> dict[str, float]:
        """What can be counted beside the grade."""
        metrics = {} if self.exchange.yields == 2 else {"num_turns": float(self.turns)}
        return metrics if self.toolbox is None else {**metrics, **self.toolbox.metrics()}

    async def close(self) -> None:
        if self._exchange is not None:
            with self._running():
                await self._exchange.close()

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Let the template's own code find the rollout it runs in."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


class FunctionTools:
    """The tools of one rollout; what goes wrong in them is told to the model, and counted."""

    workspace: Workspace | None = None

    def __init__(self, functions: Mapping[str, Tool], threads: Threads) -> None:
        self.functions = functions
        self.threads = threads
        self.tools: Sequence[ToolSpec] = tuple(tool.spec for tool in functions.values())
        self.calls = 0
        self.errors = 0

    async def call(self, name: str, arguments: str) -> str:
        self.calls += 1
        try:
            tool = find_tool(name, self.functions)
            value = await run_tool(tool, tool.arguments(arguments), self.threads)
            return storable(as_text(value))
        except RolloutError:
            self.errors += 1
            raise
        except Exception as error:
            self.errors += 1
            return storable(told(error))

    def metrics(self) -> dict[str, float]:
        return {"total_tool_calls": float(self.calls), "tool_errors": float(self.errors)}
