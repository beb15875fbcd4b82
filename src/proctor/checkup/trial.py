"""Play an environment with known agents, by the real engine, and score every rollout twice.

The players of one task are its rollouts, so that an environment which compares them compares right with
wrong. Knows nothing of what the rewards should be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, cast

import msgspec

from proctor.agents.tool_loop import ToolLoop
from proctor.checkup.reference_agents import PlayerModel, Rendezvous, ScriptedPlayer
from proctor.contracts import (
    EnvironmentProtocol,
    GroupEnvironment,
    Model,
    PieceListener,
    Seat,
    Session,
    Toolbox,
    Traits,
)
from proctor.engine.desk import RecordedDesk, run_agent
from proctor.engine.plan import Plan
from proctor.engine.player import Player as EnginePlayer
from proctor.engine.player import Rules
from proctor.engine.runner import Runner
from proctor.engine.seat import RunContext
from proctor.errors import Failure, ModelError, RolloutError, format_last_frames, list_causes
from proctor.rollout import Rollout, RolloutKey, Score
from proctor.task import Task, TaskId
from proctor.trace import Message, Reply, ToolSpec, Trace

MAX_CONCURRENT = 8


class HelperMissingError(ModelError):
    """The environment asks a model of its own choice, and none was named."""


class Disagreement(msgspec.Struct, frozen=True):
    """Two scorings of one rollout that differ."""

    player: str
    task: TaskId
    what: str


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What was played."""

    players: Sequence[ScriptedPlayer]
    rollouts: Sequence[Rollout]
    disagreements: Sequence[Disagreement]
    locations: Mapping[RolloutKey, str] = {}
    """Where the first cause of a failure was raised."""


async def play_trial(
    environment: EnvironmentProtocol,
    players: Sequence[ScriptedPlayer],
    tasks: Sequence[Task],
    *,
    helper: Model | None,
    seconds: float,
    progress: Callable[[], None],
    at_once: int = MAX_CONCURRENT,
    rendezvous: Rendezvous | None = None,
) -> Trial:
    """Every player on every task. Raises ConfigError where the engine refuses to start."""
    stage = TrialEnvironment(environment, players, helper, rendezvous)
    rollouts: list[Rollout] = []

    def keep(finished: Sequence[Rollout]) -> None:
        rollouts.extend(finished)
        progress()

    rules = Rules(
        at_once=at_once,
        grouped=environment.traits.grouped,
        start_seconds=seconds,
        rollout_seconds=seconds,
        scoring_seconds=seconds,
    )
    table = RunContext(PlayerModel("nobody", ()))
    plan = Plan(tasks=tasks, rollouts_per_task=len(players), whole_groups=rules.grouped)
    await Runner(EnginePlayer(stage, table, rules, lambda _: None), lambda _: None, keep).run(plan)
    return Trial(
        players=players, rollouts=rollouts, disagreements=stage.disagreements, locations=stage.locations
    )


class TrialEnvironment:
    """The environment, with a player in every seat."""

    def __init__(
        self,
        environment: EnvironmentProtocol,
        players: Sequence[ScriptedPlayer],
        helper: Model | None,
        rendezvous: Rendezvous | None = None,
    ) -> None:
        self.rendezvous = rendezvous
        self.environment = environment
        self.players = players
        self.helper = helper
        self.disagreements: list[Disagreement] = []
        self.locations: dict[RolloutKey, str] = {}

    @property
    def traits(self) -> Traits:
        return self.environment.traits

    def tasks(self) -> Iterable[Task]:
        return self.environment.tasks()

    def open(self, task: Task) -> TrialSession:
        return TrialSession(self, task, self.environment.open(task))

    async def score_group(self, played: Sequence[tuple[Session, Seat]]) -> Sequence[Score | RolloutError]:
        performances = [cast(TrialSession, session) for session, _ in played]
        environment = cast(GroupEnvironment, self.environment)
        pairs = [(each.session, cast(Seat, each.seat)) for each in performances]
        first = await environment.score_group(pairs)
        for each, result in zip(performances, first, strict=True):
            if isinstance(result, RolloutError):
                each.note(result)
        if self.traits.rescores:
            second = await environment.score_group(pairs)
            for each, one, other in zip(performances, first, second, strict=True):
                if isinstance(one, Score):
                    each.compare(one, other)
        return first

    async def check(self) -> None:
        await self.environment.check()

    async def close(self) -> None:
        await self.environment.close()


class TrialSession:
    """One player's session with one task."""

    def __init__(
        self, stage: TrialEnvironment, task: Task, opening: AbstractAsyncContextManager[Session]
    ) -> None:
        self.stage = stage
        self.task = task
        self.opening = opening
        self.session: Session
        self.seat: TrialSeat
        self.number = 0

    async def __aenter__(self) -> TrialSession:
        self.session = await self.opening.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self.stage.rendezvous is not None:
            self.stage.rendezvous.leave(self.number)
        return await self.opening.__aexit__(kind, error, trace)

    async def play(self, seat: Seat) -> None:
        self.number = seat.facts["rollout"]
        player = self.stage.players[self.number]
        actor = PlayerModel(player.name, player.lines[self.task.id])
        if self.stage.rendezvous is not None:
            actor.pace = partial(self.stage.rendezvous.arrive, self.number)
        self.seat = TrialSeat(seat, player, actor, self.stage.helper)
        try:
            await self.session.play(cast(Seat, self.seat))
        except Exception as error:
            self.note(error)
            raise

    async def score(self, seat: Seat) -> Score:  # noqa: ARG002
        taken = cast(Seat, self.seat)
        try:
            first = await self.session.score(taken)
        except Exception as error:
            self.note(error)
            raise
        if self.stage.traits.rescores:
            try:
                self.compare(first, await self.session.score(taken))
            except Exception as error:
                self.compare(first, error)
        return first

    def note(self, error: Exception) -> None:
        """Keep where it began: the engine's record names only where it was passed on."""
        frames = format_last_frames(list_causes(error)[-1])
        if frames:
            self.stage.locations[(self.task.id, self.number)] = frames[-1]

    def compare(self, first: Score, second: Score | Exception) -> None:
        what = describe_difference(first, second)
        if what:
            self.stage.disagreements.append(Disagreement(self.seat.player.name, self.task.id, what))


class TrialSeat:
    """A seat whose agent is a player. What else the environment asks, it asks the helper."""

    def __init__(self, seat: Seat, player: ScriptedPlayer, actor: PlayerModel, helper: Model | None) -> None:
        self.seat = seat
        self.player = player
        self.actor = actor
        self.helper = helper

    @property
    def trace(self) -> Trace:
        return self.seat.trace

    @property
    def facts(self) -> Any:
        return self.seat.facts

    @facts.setter
    def facts(self, facts: Any) -> None:
        self.seat.facts = facts

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        sampling: Any = None,
        role: str = "agent",
        model: Model | None = None,
        pieces: PieceListener | None = None,
    ) -> Reply:
        asked = model or (self.actor if role == "agent" else self.helper)
        if asked is None:
            raise HelperMissingError(f"the environment asks a model in the role {role!r}, and none was named")
        return await self.seat.complete(
            messages, tools=tools, sampling=sampling, role=role, model=asked, pieces=pieces
        )

    async def drive(self, messages: Sequence[Message], toolbox: Toolbox | None = None) -> str:
        return await run_agent(
            RecordedDesk(cast(Seat, self), messages, toolbox), ToolLoop(name=self.player.name)
        )

    def open_endpoint(self, max_requests: int | None = None) -> NoReturn:  # noqa: ARG002
        raise HelperMissingError("the environment calls the model over HTTP, which a check cannot answer")


def describe_difference(first: Score, second: Score | Exception) -> str:
    """How the second scoring differs from the first; nothing if it does not."""
    if isinstance(second, Exception):
        return f"the second time it raised {Failure.of(second).kind}: {second}"
    if not math.isclose(first.reward, second.reward, rel_tol=1e-9, abs_tol=1e-9):
        return f"the reward is {first.reward:g}, and then {second.reward:g}"
    for name, value in first.metrics.items():
        other = second.metrics.get(name)
        if other is None or not math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-9):
            return f"{name} is {value:g}, and then {other if other is None else format(other, 'g')}"
    return ""
