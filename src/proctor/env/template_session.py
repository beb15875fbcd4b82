"""A rollout of a template, played by the chosen agent in this process."""

from __future__ import annotations

from types import TracebackType

from proctor.contracts import Seat
from proctor.env.multi_turn import with_metrics
from proctor.env.rewards import Grade
from proctor.env.template_rollout import MOST_TURNS, TemplateRollout
from proctor.errors import EnvError
from proctor.rollout import Score
from proctor.trace import Message, last_assistant_text


class TemplateSession:
    """Passes the template's prompts to the agent, and the agent's answers back."""

    def __init__(self, rollout: TemplateRollout) -> None:
        self.rollout = rollout
        self.prompt: list[Message] = []
        self.answer: str | None = None
        """The answer of the last turn, once there is one."""
        self.grade: Grade | None = None

    async def __aenter__(self) -> TemplateSession:
        try:
            self.prompt = await self.rollout.begin()
        except BaseException:
            await self.rollout.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.rollout.seat is not None and self.rollout.folders:
                self.rollout.seat.trace.files = await self.rollout.file_changes()
        finally:
            await self.rollout.close()

    async def play(self, seat: Seat) -> None:
        rollout, messages = self.rollout, self.prompt
        rollout.seat = seat
        for _ in range(MOST_TURNS):
            self.answer = None
            self.answer = await seat.drive(messages, rollout.toolbox)
            if rollout.ends_next or seat.trace.timed_out:
                return
            step = await rollout.reply(self.answer)
            if isinstance(step, Grade):
                self.grade = step
                return
            messages = step
        raise EnvError(f"{rollout.exchange.where} still yields prompts after {MOST_TURNS} turns")

    async def score(self, seat: Seat) -> Score:
        answer = last_assistant_text(seat.trace.completion) if self.answer is None else self.answer
        grade = self.grade or await self.rollout.settle(answer)
        if grade.info or grade.content is not None:
            seat.facts = {**seat.facts, "grade_info": dict(grade.info), "grade_content": grade.content}
        return with_metrics(grade.score, self.rollout.metrics())
