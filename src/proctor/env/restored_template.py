"""A rollout of a template that was played before, ready to be scored again.

The template runs again and gets the recorded answers; where it asks anything else than it did, the record is
of no use to it. Knows nothing of agents.
"""

from __future__ import annotations

from collections.abc import Sequence

from proctor.contracts import Seat
from proctor.env.restored import require_same_prompt
from proctor.env.rewards import Grade
from proctor.env.template_rollout import TemplateRollout
from proctor.env.template_session import TemplateSession
from proctor.errors import EnvError
from proctor.rollout import RecordedPlay
from proctor.trace import Message, Trace, last_assistant_text


class RestoredTemplateSession(TemplateSession):
    """A recorded rollout of a template: the template runs again, and gets the recorded answers."""

    def __init__(self, rollout: TemplateRollout, recorded: RecordedPlay) -> None:
        super().__init__(rollout)
        self.recorded = recorded

    async def play(self, seat: Seat) -> None:
        rollout, trace = self.rollout, seat.trace
        rollout.seat = seat
        require_same_prompt(self.prompt, trace.prompt[-len(self.prompt) :])
        *earlier, self.answer = trace.answers or [last_assistant_text(trace.completion)]
        for answer in earlier:
            step = await rollout.reply(answer)
            if isinstance(step, Grade):
                self.grade = step
                return
            require_recorded(step, trace)


def require_recorded(step: Sequence[Message], trace: Trace) -> None:
    if not all(message in trace.completion for message in step):
        raise EnvError("the template yields another prompt than it did, so this rollout must be played again")
