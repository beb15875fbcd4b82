"""Drive one started template: it yields prompts and at last the grade, and is sent answers.

Knows nothing of who answers, or of what is lent to them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec

from proctor.env.multi_turn import with_metrics
from proctor.env.rewards import Grade, grade_of, is_reward, messages_of, short_repr
from proctor.errors import EnvError, GraderError
from proctor.rollout import Score, Subscore
from proctor.trace import Message

UNREADABLE = "unreadable_answer"


class Exchange:
    """One started template: prompts come out, answers go in, and a grade ends it."""

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
        """How often it yields, if known."""
        self.yielded = 0
        self.bindings: dict[str, Any] | None = None
        """What the template states about this task's capabilities, for clients that ask."""

    @property
    def ends_next(self) -> bool:
        """Whether the next answer is certainly the last, so that only scoring follows."""
        return self.yields is not None and self.yielded == self.yields - 1

    async def begin(self) -> list[Message]:
        """Run up to the first yield: the prompt."""
        try:
            prompt = await anext(self.generator)
        except StopAsyncIteration as error:
            raise EnvError(f"{self.where} ended without yielding a prompt") from error
        self.yielded = 1
        if isinstance(prompt, Mapping) and "prompt" in prompt and "role" not in prompt:
            self.bindings = read_bindings(prompt, self.where)
            prompt = prompt["prompt"]
        return messages_of(prompt, self.where)

    async def reply(self, answer: str) -> list[Message] | Grade:
        """Run up to the next yield: another prompt, or the grade."""
        ends = self.ends_next
        try:
            sent = answer if self.returns is str else read_answer(answer, self.returns)
        except ValueError as error:
            return grade_unreadable(str(error))
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


def read_bindings(first: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """The bindings of `{"prompt": …, "bindings": {capability: {…}}}`."""
    bindings = first.get("bindings")
    if bindings is not None and not isinstance(bindings, Mapping):
        raise EnvError(
            f"{where} yielded bindings that are {short_repr(bindings)}; give an object by capability"
        )
    return None if bindings is None else dict(bindings)


FENCED = re.compile(r"\A```[a-zA-Z]*\n(.*)\n```\Z", re.DOTALL)


def read_answer(answer: str, kind: Any) -> Any:
    """The answer in its declared type, from JSON or bare text; ValueError if it fits neither."""
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


def grade_unreadable(note: str) -> Grade:
    """A score of 0 with the reason: the answer does not have the declared type."""
    return Grade(Score(0.0, {UNREADABLE: 1.0}, (Subscore("answer", 0.0, note=note),)))
