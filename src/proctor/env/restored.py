"""Rollouts that were played before, ready to be scored again.

The conversation and the saved state are taken over; nothing is played and no hook of the author's runs. What
the record does not hold is an error that names it: a default in its place would be a wrong score that looks
right. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from proctor.contracts import Seat
from proctor.env.rubric import LATER_STATE
from proctor.env.state import State, state_of
from proctor.errors import EnvError, GraderError
from proctor.rollout import RecordedPlay, Score
from proctor.task import Task, canonical_bytes
from proctor.trace import Message

if TYPE_CHECKING:
    from types import TracebackType

    from proctor.env.multi_turn import MultiTurnEnv


class MissingStateError(GraderError, KeyError):
    """A reward function reads state that was not saved."""

    __str__ = Exception.__str__


class RestoredState(State):
    """The state of a rollout that was played before.

    Where an author's code may have added to it, reading what was not saved is an error.
    """

    __slots__ = ("was_open",)

    was_open: bool

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - `in` may refuse

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        if self.was_open and name not in LATER_STATE:
            raise missing_state(name)
        return False

    def __missing__(self, name: str) -> Any:
        raise missing_state(name)


def missing_state(name: object) -> MissingStateError:
    return MissingStateError(
        f"scoring reads {name!r} of the state, which the record does not hold; play with -C {name} to keep it"
    )


class RestoredTurnSession:
    """A recorded rollout of an environment that owns its turns."""

    def __init__(self, env: MultiTurnEnv, task: Task, recorded: RecordedPlay, was_open: bool) -> None:
        self.env = env
        self.state = state = RestoredState(state_of(task, env.name))
        state.was_open = was_open
        state.update(recorded.columns)
        self.was_open = was_open
        self.task = task

    async def __aenter__(self) -> RestoredTurnSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def play(self, seat: Seat) -> None:
        state, trace = self.state, seat.trace
        if not self.was_open:
            require_same_prompt(self.task.prompt, trace.prompt)
        for name, fact in seat.facts.items():
            state.setdefault(name, fact)
        seat.facts = state
        state.seat = seat
        answered = [call for call in trace.calls if call.reply is not None]
        state.update(
            prompt=trace.prompt,
            completion=trace.completion,
            turn=len(answered),
            trajectory=answered,
            stop_condition=trace.stop_condition,
        )
        if trace.truncated:
            state["is_truncated"] = True

    async def score(self, seat: Seat) -> Score:  # noqa: ARG002
        return self.env.with_metrics_of(self.state, await self.env.rubric.score(self.state, self.env.threads))


def require_same_prompt(now: Sequence[Message], then: Sequence[Message]) -> None:
    if list(now) != list(then) and canonical_bytes(now) != canonical_bytes(list(then)):
        raise EnvError("the prompt has changed since this rollout was played, so it must be played again")
