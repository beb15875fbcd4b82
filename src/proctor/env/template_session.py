"""Play one template: what it yields goes to the agent, what the agent answers goes back.

An Exchange drives the generator and knows nothing of seats, so that whoever serves an environment to others
can use it as well. A session is an Exchange with an agent at the other end.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol

import msgspec

from proctor.contracts import Seat
from proctor.env.multi_turn import with_metrics
from proctor.env.rewards import Grade, grade_of, is_reward, messages_of
from proctor.env.threads import Threads
from proctor.env.tool_env import as_text, find_tool, run_tool, storable, told
from proctor.env.tools import Tool
from proctor.errors import EnvError, GraderError, RolloutError
from proctor.rollout import Score, Subscore
from proctor.trace import Message, ToolSpec, text_of

MOST_TURNS = 1000
UNREADABLE = "unreadable_answer"

_seat: ContextVar[Seat | None] = ContextVar("seat", default=None)


@contextmanager
def seated(seat: Seat) -> Iterator[None]:
    """Let the template's own code find the seat of the rollout it runs in."""
    token = _seat.set(seat)
    try:
        yield
    finally:
        _seat.reset(token)


def current_seat() -> Seat | None:
    return _seat.get()


class Exchange:
    """One started template: prompts come out, answers go in, and at the end there is a grade."""

    def __init__(
        self,
        generator: AsyncGenerator[Any, Any],
        name: str,
        *,
        returns: Any = str,
        yields: int | None = None,
    ) -> None:
        self.generator = generator
        self.where = f"template {name!r}"
        self.returns = returns
        self.yields = yields
        """How often it yields, where that is known."""
        self.yielded = 0

    @property
    def ends_next(self) -> bool:
        """Whether the next answer is certainly the last one, so that all after it is scoring."""
        return self.yields is not None and self.yielded == self.yields - 1

    async def begin(self) -> list[Message]:
        """Run up to the first yield: the prompt."""
        try:
            prompt = await anext(self.generator)
        except StopAsyncIteration as error:
            raise EnvError(f"{self.where} ended without yielding a prompt") from error
        self.yielded = 1
        return messages_of(prompt, self.where)

    async def reply(self, answer: str) -> list[Message] | Grade:
        """Run up to the next yield: another prompt, or the grade."""
        ends = self.ends_next
        try:
            sent = answer if self.returns is str else read_answer(answer, self.returns)
        except ValueError as error:
            return unreadable(str(error))
        try:
            step = await self.generator.asend(sent)
        except StopAsyncIteration as error:
            raise GraderError(f"{self.where} ended without yielding a reward") from error
        self.yielded += 1
        if not ends and not is_reward(step):
            return messages_of(step, self.where)
        grade = grade_of(step, self.where)
        if self.returns is str:
            return grade
        return msgspec.structs.replace(grade, score=with_metrics(grade.score, {UNREADABLE: 0.0}))

    async def close(self) -> None:
        await self.generator.aclose()


FENCED = re.compile(r"\A```[a-zA-Z]*\n(.*)\n```\Z", re.DOTALL)


def read_answer(answer: str, kind: Any) -> Any:
    """The answer as the type it should have, from its JSON or its bare text; ValueError if it is neither."""
    text = answer.strip()
    if fenced := FENCED.match(text):
        text = fenced[1].strip()
    try:
        return msgspec.convert(msgspec.json.decode(text), kind, strict=False)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        problem = str(error)
    try:
        return msgspec.convert(text, kind, strict=False)
    except (msgspec.ValidationError, RecursionError):
        raise ValueError(f"the answer cannot be read: {problem}") from None


def unreadable(note: str) -> Grade:
    """A wrong answer that says why: the model did not give what was asked for."""
    return Grade(Score(0.0, {UNREADABLE: 1.0}, (Subscore("answer", 0.0, note=note),)))


class FunctionTools:
    """The tools of one rollout; what goes wrong in them is told to the model, and counted."""

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


class Stage(Protocol):
    """Where a template is played."""

    async def start(self) -> None:
        """Have everything ready that all rollouts share."""

    def exchange(self) -> Exchange: ...
    def toolbox(self) -> FunctionTools | None: ...


class TemplateSession:
    """One rollout of a template, played by the chosen agent."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.toolbox = stage.toolbox()
        self.exchange: Exchange
        self.turns = 0
        self.answer: str | None = None
        """What the last turn came to, once it has."""
        self.grade: Grade | None = None

    async def __aenter__(self) -> TemplateSession:
        await self.stage.start()
        self.exchange = self.stage.exchange()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.exchange.close()

    async def play(self, seat: Seat) -> None:
        with seated(seat):
            messages = await self.exchange.begin()
        for _ in range(MOST_TURNS):
            self.answer = None
            self.turns += 1
            self.answer = await seat.drive(messages, self.toolbox)
            if self.exchange.ends_next:
                return
            with seated(seat):
                step = await self.exchange.reply(self.answer)
            if isinstance(step, Grade):
                self.grade = step
                return
            messages = step
        raise EnvError(f"{self.exchange.where} still asks after {MOST_TURNS} turns")

    async def score(self, seat: Seat) -> Score:
        with seated(seat):
            grade = self.grade or await self.settled(seat)
        if grade.info or grade.content is not None:
            seat.facts = {**seat.facts, "grade_info": dict(grade.info), "grade_content": grade.content}
        return with_metrics(grade.score, self.metrics())

    async def settled(self, seat: Seat) -> Grade:
        """The grade for what was answered. An agent that was cut short has said what it said, and answers
        nothing to whatever else the template asks."""
        answer = last_words(seat.trace.completion) if self.answer is None else self.answer
        for _ in range(MOST_TURNS):
            step = await self.exchange.reply(answer)
            if isinstance(step, Grade):
                return step
            answer = ""
        raise GraderError(f"{self.exchange.where} asks on and on instead of yielding a reward")

    def metrics(self) -> dict[str, float]:
        metrics = {} if self.exchange.yields == 2 else {"num_turns": float(self.turns)}
        return metrics if self.toolbox is None else {**metrics, **self.toolbox.metrics()}


def last_words(completion: Sequence[Message]) -> str:
    """The last text said since the environment last spoke."""
    for message in reversed(completion):
        if message.get("role") == "user":
            break
        if message.get("role") == "assistant" and text_of(message):
            return text_of(message)
    return ""
