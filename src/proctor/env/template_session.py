"""A rollout of a template, played by the chosen agent in this process."""

from __future__ import annotations

from types import TracebackType

from proctor.contracts import Seat
from proctor.env.multi_turn import with_metrics
from proctor.env.performance import MOST_TURNS, TemplateRollout
from proctor.env.rewards import Grade
from proctor.errors import EnvError
from proctor.rollout import Score
from proctor.trace import Message, last_assistant_text


class TemplateSession:
    """What the template yields goes to the agent, what the agent answers goes back."""

    def __init__(self, performance: TemplateRollout) -> None:
        self.performance = performance
        self.prompt: list[Message] = []
        self.answer: str | None = None
        """What the last turn came to, once it has."""
        self.grade: Grade | None = None

    async def __aenter__(self) -> TemplateSession:
        try:
            self.prompt = await self.performance.begin()
        except BaseException:
            await self.performance.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.performance.seat is not None and self.performance.folders:
                self.performance.seat.trace.files = await self.performance.file_changes()
        finally:
            await self.performance.close()

    async def play(self, seat: Seat) -> None:
        performance, messages = self.performance, self.prompt
        performance.seat = seat
        for _ in range(MOST_TURNS):
            self.answer = None
            self.answer = await seat.drive(messages, performance.toolbox)
            if performance.ends_next or seat.trace.timed_out:
                return
            step = await performance.reply(self.answer)
            if isinstance(step, Grade):
                self.grade = step
                return
            messages = step
        raise EnvError(f"{performance.exchange.where} still asks after {MOST_TURNS} turns")

    async def score(self, seat: Seat) -> Score:
        answer = last_assistant_text(seat.trace.completion) if self.answer is None else self.answer
        grade = self.grade or await self.performance.settle(answer)
        if grade.info or grade.content is not None:
            seat.facts = {**seat.facts, "grade_info": dict(grade.info), "grade_content": grade.content}
        return with_metrics(grade.score, self.performance.metrics())
