"""A plan being run: what happens at once, what happens together, what happens again, and when it ends."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

import pytest

from proctor import EchoEnvironment, Rubric, Scripted, SingleTurnEnv, State, Step, Task, cleanup, stop
from proctor.contracts import EnvironmentProtocol, Model, Request, Seat, Session, Traits
from proctor.engine.plan import Plan, select
from proctor.engine.player import Player, Rules
from proctor.engine.runner import Runner
from proctor.engine.seat import RunContext
from proctor.env.echo import repeats
from proctor.errors import (
    AuthError,
    ConfigError,
    EnvLostError,
    GraderError,
    InfraError,
    ModelTimeoutError,
    OverloadedError,
    RequestRefusedError,
    RolloutError,
    StoreError,
)
from proctor.events import Event, ModelCalled, PlanCounted, RolloutRetried, RolloutStarted
from proctor.rollout import Outcome, Rollout, Score
from proctor.trace import Reply
from tests.steady_time import run_steadily
from tests.waiting import SECONDS

T = TypeVar("T")

SOON = 0.001
"""The first wait before a retry, in seconds."""


@dataclass
class Played:
    """A run and everything it said."""

    rollouts: list[Rollout] = field(default_factory=list)
    batches: list[Sequence[Rollout]] = field(default_factory=list)
    """The same, as the runner handed them over."""
    events: list[Event] = field(default_factory=list)
    most_tasks: int = 0
    """asyncio tasks there were at once, at most."""

    def heard(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def outcomes(self) -> list[Outcome]:
        return [rollout.outcome for rollout in self.rollouts]

    def of(self, task: int, number: int = 0) -> Rollout:
        return next(rollout for rollout in self.rollouts if rollout.key == (task, number))


def play(
    environment: EnvironmentProtocol,
    model: Model | Sequence[Any] | dict[str, Any] = (),
    *,
    tasks: int = -1,
    rollouts: int = 1,
    stop_after: float = math.inf,
    seconds: float = SECONDS,
    keep: Callable[[Sequence[Rollout]], None] = lambda _: None,
    into: Played | None = None,
    **rules: Any,
) -> Played:
    """Run an environment; stop after so many finished rollouts; fail rather than hang."""
    played = Played() if into is None else into
    asked = Scripted(model) if isinstance(model, (list, tuple, dict)) else model

    def kept(finished: Sequence[Rollout]) -> None:
        played.rollouts.extend(finished)
        played.batches.append(finished)
        keep(finished)
        if len(played.rollouts) >= stop_after:
            runner.stop()

    def hear(event: Event) -> None:
        played.events.append(event)
        played.most_tasks = max(played.most_tasks, len(asyncio.all_tasks()))

    async def run() -> None:
        async with asyncio.timeout(seconds):
            await runner.run(Plan(tasks=select(environment.tasks(), tasks), rollouts_per_task=rollouts))

    given = {"grouped": environment.traits.grouped, "first_wait_seconds": SOON, **rules}
    context = RunContext(asked, emit=hear, first_repeat_seconds=SOON)  # type: ignore[arg-type]
    runner = Runner(Player(environment, context, Rules(**given), hear), hear, kept)
    try:
        run_steadily(run())
    finally:
        played.rollouts.sort(key=lambda rollout: rollout.key)
    return played


class Gauge:
    """How many are inside, and how many ever were at once."""

    def __init__(self) -> None:
        self.now = self.most = self.ever = 0

    def __enter__(self) -> None:
        self.now += 1
        self.ever += 1
        self.most = max(self.most, self.now)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.now -= 1


class Watched(Scripted):
    """A model that takes a moment, and counts who waits for it."""

    def __init__(self, seconds: float = 0.005) -> None:
        super().__init__()
        self.seconds = seconds
        self.gauge = Gauge()

    async def complete(self, request: Request) -> Reply:
        with self.gauge:
            await asyncio.sleep(self.seconds)
            return await super().complete(request)


def rows(count: int) -> list[dict[str, Any]]:
    return [{"question": f"say {number}", "answer": f"say {number}"} for number in range(count)]


def echo(count: int) -> EchoEnvironment:
    return EchoEnvironment(*(f"say {number}" for number in range(count)))


def scored_slowly(count: int, gauge: Gauge, seconds: float = 0.005) -> SingleTurnEnv:
    async def slow(completion: Any) -> float:
        with gauge:
            await asyncio.sleep(seconds)
        return 1.0

    return SingleTurnEnv(rows(count), rubric=Rubric(slow))


def compared(count: int, compare: Callable[[list[State]], list[float]] | None = None) -> SingleTurnEnv:
    """An environment whose rollouts of one task are scored together, by default by their place."""

    def place(states: list[State]) -> list[float]:
        return [float(number) for number in range(len(states))]

    function = compare or place
    function.__annotations__["return"] = list
    return SingleTurnEnv(rows(count), rubric=Rubric(function))


# At once


@pytest.mark.parametrize("at_once", [1, 7])
def test_as_many_are_played_at_once_as_allowed_and_never_more(at_once: int) -> None:
    model = Watched()

    played = play(echo(20), model, at_once=at_once)

    assert model.gauge.most == at_once
    assert played.outcomes == ["scored"] * 20


def test_playing_and_scoring_have_limits_of_their_own() -> None:
    model, scoring = Watched(), Gauge()

    played = play(
        scored_slowly(30, scoring, 0.02), model, at_once=12, generation_at_once=6, scoring_at_once=2
    )

    assert model.gauge.most == 6
    assert scoring.most == 2
    assert played.outcomes == ["scored"] * 30


def test_scoring_may_be_wider_than_playing() -> None:
    model, scoring = Watched(0.002), Gauge()

    play(scored_slowly(30, scoring, 0.1), model, at_once=10, generation_at_once=1)

    assert model.gauge.most == 1
    assert scoring.most == 10


def test_grouped_rollouts_are_counted_one_by_one() -> None:
    model = Watched()

    played = play(compared(6), model, rollouts=4, at_once=8)

    assert model.gauge.most == 8
    assert len(played.rollouts) == 24


@pytest.mark.parametrize("limit", [None, 2])
def test_scoring_after_everything_was_played_is_limited_too(limit: int | None) -> None:
    scoring = Gauge()

    played = play(scored_slowly(30, scoring), at_once=6, scoring_at_once=limit, interleave=False)

    assert scoring.most == (limit or 6)
    assert played.outcomes == ["scored"] * 30


def test_rollouts_that_are_scored_together_each_count_towards_the_limit() -> None:
    scoring = Gauge()

    async def compare(states: list[State]) -> list[float]:
        for _ in states:
            scoring.__enter__()
        await asyncio.sleep(0.01)
        for _ in states:
            scoring.__exit__(None, None, None)
        return [1.0] * len(states)

    played = play(compared(8, compare), rollouts=3, at_once=24, scoring_at_once=7)  # type: ignore[arg-type]

    assert scoring.most == 6, "two groups of three; a third would not fit"
    assert played.outcomes == ["scored"] * 24


def test_a_group_larger_than_the_limit_is_scored_alone() -> None:
    played = play(compared(3), rollouts=4, at_once=4, scoring_at_once=2)

    assert played.outcomes == ["scored"] * 12


def test_scores_wait_for_nobody() -> None:
    """A rollout is finished while a slower one is still being played."""
    script = {"say 0": Step(text="say 0", delay_seconds=0.2), "say 1": "say 1"}

    played = play(echo(2), script)

    assert [batch[0].task.id for batch in played.batches] == [1, 0]


# Lazily


def endless(read: list[int]) -> SingleTurnEnv:
    def without_end() -> Iterator[dict[str, Any]]:
        for number in itertools.count():
            read.append(number)
            yield {"question": f"say {number}", "answer": f"say {number}"}

    return SingleTurnEnv(without_end, rubric=Rubric(repeats))


def test_of_an_endless_dataset_only_what_is_asked_for_is_read() -> None:
    read: list[int] = []

    played = play(endless(read), tasks=10, at_once=4)

    assert len(played.rollouts) == 10
    assert len(read) == 10


def test_an_endless_dataset_is_read_no_further_than_the_work_has_come() -> None:
    read: list[int] = []

    played = play(endless(read), at_once=4, stop_after=20)

    assert len(played.rollouts) >= 20
    assert len(read) <= len(played.rollouts) + 4


class Million(Sequence[Task]):
    """Tasks that are made when they are looked at."""

    made = 0

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: Any) -> Any:
        self.made += 1
        return Task(id=index, prompt=({"role": "user", "content": "hi"},), answer="hi")


def test_a_million_planned_rollouts_do_not_become_a_million_tasks() -> None:
    million = Million()

    class Vast(EchoEnvironment):
        def tasks(self) -> Iterable[Task]:
            return million

    played = play(Vast(), rollouts=3, at_once=8, stop_after=300)

    assert played.most_tasks <= 8 + 2  # workers, the run, and the test
    assert million.made <= len(played.rollouts) / 3 + 8
    assert len(played.rollouts) < 30_000


def test_the_size_of_the_plan_is_told_when_the_tasks_have_run_out() -> None:
    uncounted = SingleTurnEnv(lambda: iter(rows(3)), rubric=Rubric(repeats))

    assert [event.planned for event in play(uncounted, rollouts=2).heard(PlanCounted)] == [6]
    assert not play(echo(3)).heard(PlanCounted)


# Capacity


def holding(most: int, gauge: Gauge, grouped: bool = False) -> SingleTurnEnv:
    """An environment that can hold only so many sessions."""

    class Small(SingleTurnEnv):
        async def setup_state(self, state: State) -> None:
            gauge.__enter__()

        @cleanup
        async def leave(self, state: State) -> None:
            gauge.__exit__(None, None, None)

    async def slow(completion: Any) -> float:
        await asyncio.sleep(0.003)
        return 1.0

    def together(states: list[State]) -> list[float]:
        return [1.0] * len(states)

    return Small(rows(12), rubric=Rubric(together if grouped else slow), capacity=most)


def test_an_environment_never_holds_more_sessions_than_it_can() -> None:
    gauge = Gauge()

    played = play(holding(3, gauge), Watched(), at_once=32)

    assert gauge.most == 3
    assert gauge.now == 0
    assert played.outcomes == ["scored"] * 12


def test_groups_take_their_places_together_and_never_wait_for_each_other_forever() -> None:
    gauge = Gauge()

    played = play(holding(5, gauge, grouped=True), Watched(), rollouts=3, at_once=32)

    assert gauge.most <= 5
    assert [rollout.group_size for rollout in played.rollouts] == [3] * 36


def test_what_cannot_fit_is_refused_before_anything_is_played() -> None:
    model = Watched()

    with pytest.raises(ConfigError, match="holds at most 2 sessions"):
        play(holding(2, Gauge(), grouped=True), model, rollouts=3)
    with pytest.raises(ConfigError, match="--no-interleave-scoring"):
        play(holding(2, Gauge()), model, interleave=False)
    assert model.gauge.ever == 0


# Together


def test_a_tasks_rollouts_are_scored_together_and_reported_together() -> None:
    sizes: list[int] = []

    def place(states: list[State]) -> list[float]:
        sizes.append(len(states))
        assert len({state["example_id"] for state in states}) == 1
        return [float(number) for number in range(len(states))]

    played = play(compared(3, place), rollouts=4)

    assert sizes == [4, 4, 4]
    assert [rollout.group_size for rollout in played.rollouts] == [4] * 12
    for task in range(3):
        rewards = [played.of(task, number).score for number in range(4)]
        assert sorted(score.reward for score in rewards if score) == [0.0, 1.0, 2.0, 3.0]
    assert [len(batch) for batch in played.batches] == [4, 4, 4]


def test_a_group_is_scored_without_the_one_that_failed_and_says_so() -> None:
    script = {"say 1": ["say 1", Step(error="refused"), "say 1"]}

    played = play(compared(3), script, rollouts=3)

    assert sorted(played.outcomes) == ["model_error"] + ["scored"] * 8
    first = [rollout for rollout in played.rollouts if rollout.task.id == 1]
    assert [rollout.group_size for rollout in first if rollout.outcome == "scored"] == [2, 2]
    assert {rollout.group_size for rollout in played.rollouts if rollout.task.id != 1} == {3}


def test_a_group_of_which_everybody_failed_does_not_wait() -> None:
    played = play(compared(2), {"say 1": Step(error="refused")}, rollouts=3)

    assert played.outcomes == ["scored"] * 3 + ["model_error"] * 3


def test_one_rollouts_own_reward_function_fails_for_it_alone() -> None:
    def own(state: State, rollout_number: int = 0) -> float:
        if state["completion"][-1]["content"] == "odd":
            raise ValueError("odd indeed")
        return 1.0

    def together(states: list[State]) -> list[float]:
        return [1.0] * len(states)

    environment = SingleTurnEnv(rows(1), rubric=Rubric(own, together))

    played = play(environment, ["fine", "odd", "fine"], rollouts=3)

    assert sorted(played.outcomes) == ["grader_error", "scored", "scored"]


def test_a_group_function_that_fails_is_every_members_grader_error() -> None:
    def unfair(states: list[State]) -> list[float]:
        if states[0]["example_id"] == 1:
            raise ValueError("unfair")
        return [1.0] * len(states)

    played = play(compared(3, unfair), rollouts=2)

    assert played.outcomes == ["scored"] * 2 + ["grader_error"] * 2 + ["scored"] * 2
    failures = [rollout.failure for rollout in played.rollouts if rollout.failure]
    assert all("unfair" in failure.message for failure in failures)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0], 1.0, [1.0, math.nan], [1.0, "2"]])
def test_a_group_function_must_return_one_finite_number_for_each(values: Any) -> None:
    played = play(compared(1, lambda states: values), rollouts=2)

    assert "grader_error" in played.outcomes
    assert all(rollout.score is None for rollout in played.rollouts if rollout.outcome == "grader_error")


def test_a_group_that_is_scored_for_too_long_times_out_and_others_do_not() -> None:
    async def endless_for_one(states: list[State]) -> list[float]:
        await asyncio.sleep(30 if states[0]["example_id"] == 0 else 0)
        return [1.0] * len(states)

    endless_for_one.__annotations__["return"] = list
    environment = SingleTurnEnv(rows(3), rubric=Rubric(endless_for_one))

    played = play(environment, rollouts=2, scoring_seconds=0.1)

    assert played.outcomes == ["timeout"] * 2 + ["scored"] * 4
    failure = played.of(0).failure
    assert failure is not None
    assert failure.message == "scoring took more than 0.1 s; give it more with --scoring-timeout"


def test_waiting_for_siblings_is_nobodys_delay() -> None:
    """Three rollouts of 0.15 s, one after the other, each allowed 0.3 s."""
    played = play(compared(1), Watched(0.15), rollouts=3, at_once=1, rollout_seconds=0.3)

    assert played.outcomes == ["scored"] * 3


def test_a_stray_cancellation_while_a_group_is_scored_is_a_grader_error_with_words() -> None:
    async def stray(states: list[State]) -> list[float]:
        raise asyncio.CancelledError

    stray.__annotations__["return"] = list
    environment = SingleTurnEnv(rows(1), rubric=Rubric(stray))

    played = play(environment, rollouts=3)

    assert played.outcomes == ["grader_error"] * 3
    for rollout in played.rollouts:
        assert rollout.failure is not None
        assert "CancelledError" in rollout.failure.message


# Afterwards


@pytest.mark.parametrize("grouped", [False, True])
def test_nothing_is_scored_before_everything_was_played(grouped: bool) -> None:
    model = Watched(0.002)
    asked_by_then: list[int] = []

    def note(state: State) -> float:
        asked_by_then.append(model.gauge.ever)
        return 1.0

    def note_all(states: list[State]) -> list[float]:
        asked_by_then.append(model.gauge.ever)
        return [1.0] * len(states)

    environment = SingleTurnEnv(rows(6), rubric=Rubric(note_all if grouped else note))

    played = play(environment, model, rollouts=2, at_once=3, interleave=False)

    assert set(asked_by_then) == {12}
    assert model.gauge.most == 3
    assert played.outcomes == ["scored"] * 12


def test_scoring_afterwards_does_not_wait_for_those_that_failed() -> None:
    played = play(echo(5), {"say 3": Step(error="refused")}, interleave=False)

    assert played.outcomes == ["scored", "scored", "scored", "model_error", "scored"]


@pytest.mark.parametrize("tasks", [10, 500])
def test_a_stop_while_scoring_waits_for_everybody_scores_what_was_played(tasks: int) -> None:
    class Impatient(Watched):
        async def complete(self, request: Request) -> Reply:
            if self.gauge.ever == 2:
                runner.stop()
            return await super().complete(request)

    environment, kept = echo(tasks), Played()
    runner = Runner(
        Player(environment, RunContext(Impatient()), Rules(at_once=3, interleave=False), kept.events.append),
        kept.events.append,
        kept.rollouts.extend,
    )

    async def run() -> None:
        async with asyncio.timeout(SECONDS):
            await runner.run(Plan(tasks=environment.tasks(), rollouts_per_task=1))

    run_steadily(run())

    assert 3 <= len(kept.rollouts) < 10
    assert set(kept.outcomes) == {"scored"}


# Again


def test_a_transient_failure_is_tried_again_and_every_try_is_recorded() -> None:
    script = {"say 1": [Step(error="malformed", text="what?"), Step(error="timeout"), "say 1"]}

    played = play(echo(3), script, max_retries=3)

    assert played.outcomes == ["scored"] * 3
    tries = played.of(1).earlier
    assert [(each.outcome, each.failure.kind) for each in tries] == [
        ("model_error", "MalformedReplyError"),
        ("model_error", "ModelTimeoutError"),
    ]
    assert tries[0].failure.message == "what?"
    assert [event.key for event in played.heard(RolloutRetried)] == [(1, 0), (1, 0)]
    assert played.of(0).earlier == ()


def test_when_every_try_fails_the_last_one_is_the_outcome() -> None:
    model = Scripted([Step(error="timeout", text="nobody home")])

    played = play(echo(1), model, max_retries=2)

    assert played.outcomes == ["model_error"]
    assert len(played.of(0).earlier) == 2
    assert len(model.requests) == 3


@pytest.mark.parametrize("error", ["refused", "context_too_long"])
def test_what_would_fail_again_is_not_tried_again(error: str) -> None:
    model = Scripted(["say 0", Step(error=error)])

    play(echo(2), model, max_retries=5, at_once=1)

    assert len(model.requests) == 2


def failing(times: int, error: Exception, counter: Gauge) -> SingleTurnEnv:
    """An environment whose setup fails a few times."""

    class Unsteady(SingleTurnEnv):
        async def setup_state(self, state: State) -> None:
            with counter:
                if counter.ever <= times:
                    raise error

    return Unsteady(rows(1), rubric=Rubric(repeats))


def test_an_environments_infrastructure_is_tried_again_but_its_bugs_are_not() -> None:
    infrastructure, bug = Gauge(), Gauge()

    mended = play(failing(2, InfraError("sandbox lost"), infrastructure), max_retries=5)
    broken = play(failing(2, KeyError("sandbox"), bug), max_retries=5)

    assert mended.outcomes == ["scored"]
    assert infrastructure.ever == 3
    assert broken.outcomes == ["environment_error"]
    assert bug.ever == 1


def test_no_retries_unless_asked_for() -> None:
    assert play(echo(1), [Step(error="timeout"), "say 0"]).outcomes == ["model_error"]


@pytest.mark.parametrize("error", ["overloaded", "unreachable"])
def test_one_failure_of_the_provider_costs_no_rollout_and_is_recorded(error: str) -> None:
    played = play(echo(1), [Step(error=error, text="503"), Step(error=error, text="again"), "say 0"])

    assert played.outcomes == ["scored"]
    assert played.of(0).earlier == ()
    calls = played.of(0).trace.calls
    assert [call.failure and call.failure.message for call in calls] == ["503", "again", None]
    assert len(played.heard(ModelCalled)) == 3


def test_a_provider_that_keeps_failing_is_asked_a_few_times_only() -> None:
    model = Scripted([Step(error="overloaded", text="503")])

    played = play(echo(1), model)

    assert played.outcomes == ["model_error"]
    assert len(model.requests) == 5


@pytest.mark.parametrize("error", ["timeout", "malformed", "refused", "auth"])
def test_what_is_not_the_providers_breakdown_is_not_sent_again(error: str) -> None:
    model = Scripted(["say 0", Step(error=error)])

    play(echo(2), model, at_once=1)

    assert len(model.requests) == 2


def judged(times: int, error: Exception, counter: Gauge) -> SingleTurnEnv:
    """An environment whose judge fails a few times."""

    async def judge(state: State) -> float:
        with counter:
            if counter.ever <= times:
                raise error
        return 1.0

    return SingleTurnEnv(rows(1), rubric=Rubric(judge))


def test_a_judge_that_was_busy_is_asked_again_without_playing_again() -> None:
    model, judge = Scripted(), Gauge()

    played = play(judged(2, OverloadedError("judge is busy"), judge), model, max_retries=2)

    assert played.outcomes == ["scored"]
    assert len(model.requests) == 1
    assert judge.ever == 3
    assert [each.outcome for each in played.of(0).earlier] == ["grader_error", "grader_error"]


def test_a_judge_that_stays_busy_is_a_grader_error() -> None:
    model = Scripted()

    played = play(judged(99, ModelTimeoutError("no verdict"), Gauge()), model, max_retries=1)

    assert played.outcomes == ["grader_error"]
    assert len(played.of(0).earlier) == 1
    assert len(model.requests) == 1


def test_what_cannot_be_scored_twice_is_scored_once() -> None:
    judge = Gauge()

    class Once(SingleTurnEnv):
        @property
        def traits(self) -> Traits:
            return Traits(rescores=False)

    made = judged(1, OverloadedError("judge is busy"), judge)
    played = play(Once(rows(1), rubric=made.rubric), max_retries=5)

    assert played.outcomes == ["grader_error"]
    assert judge.ever == 1


def test_a_rate_limit_is_waited_out_without_using_up_a_retry() -> None:
    model = Scripted([Step(error="rate_limit", retry_after_seconds=0.01), "say 0"])

    played = play(echo(1), model)

    assert played.outcomes == ["scored"]
    assert played.of(0).earlier == ()
    calls = played.of(0).trace.calls
    assert [call.failure.kind if call.failure else "answered" for call in calls] == [
        "RateLimitError",
        "answered",
    ]


def test_a_rate_limit_of_hours_is_a_model_error_at_once() -> None:
    model = Scripted({"say 0": Step(error="rate_limit", retry_after_seconds=7200.0)})

    played = play(echo(2), model)

    assert played.outcomes == ["model_error", "scored"]
    assert len(model.requests) == 2


def test_a_rate_limit_that_never_ends_is_a_model_error_in_the_end() -> None:
    model = Scripted([Step(error="rate_limit", retry_after_seconds=0.0)])

    played = play(echo(1), model)

    assert played.outcomes == ["model_error"]
    assert len(model.requests) == 9


def test_a_rate_limited_provider_is_asked_less_at_once() -> None:
    class Strict(Scripted):
        """Serves four at a time and refuses the rest."""

        def __init__(self) -> None:
            super().__init__()
            self.gauge = Gauge()
            self.refusals = 0

        async def complete(self, request: Request) -> Reply:
            with self.gauge:
                if self.gauge.now > 4:
                    self.refusals += 1
                    return await Scripted([Step(error="rate_limit", retry_after_seconds=0.02)]).complete(
                        request
                    )
                await asyncio.sleep(0.01)
                return await super().complete(request)

    model = Strict()

    played = play(echo(60), model, at_once=20)

    assert played.outcomes == ["scored"] * 60
    assert model.refusals < 120  # unslowed, each of sixty would be refused time and again


# What ends a run


def test_a_stop_lets_those_in_flight_finish_and_starts_nothing_more() -> None:
    model = Watched(0.02)

    played = play(echo(100), model, at_once=5, stop_after=1)

    assert set(played.outcomes) == {"scored"}
    assert len(played.heard(RolloutStarted)) == len(played.rollouts)
    assert 5 <= len(played.rollouts) <= 10


def test_a_stop_lets_a_group_that_was_begun_be_played_whole() -> None:
    """In part it would be worth nothing; what was paid for would be lost."""

    class Impatient(Watched):
        async def complete(self, request: Request) -> Reply:
            if self.gauge.ever == 1:
                runner.stop()
            return await super().complete(request)

    environment, kept, model = compared(8), Played(), Impatient(0.01)
    runner = Runner(
        Player(environment, RunContext(model), Rules(at_once=2, grouped=True), kept.events.append),
        kept.events.append,
        kept.rollouts.extend,
    )

    async def run() -> None:
        async with asyncio.timeout(SECONDS):
            await runner.run(Plan(tasks=environment.tasks(), rollouts_per_task=4))

    run_steadily(run())

    assert {rollout.task.id for rollout in kept.rollouts} == {0}
    assert [rollout.group_size for rollout in kept.rollouts] == [4] * 4
    assert model.gauge.ever == 4


def test_rollouts_that_cannot_be_kept_stop_the_run() -> None:
    def full(rollouts: Sequence[Rollout]) -> None:
        raise StoreError("the disk is full")

    played = Played()

    with pytest.raises(StoreError, match="the disk is full"):
        play(echo(100), Watched(), at_once=2, keep=full, into=played)
    assert len(played.rollouts) <= 4


def test_a_store_with_a_bug_stops_the_run_too() -> None:
    def buggy(rollouts: Sequence[Rollout]) -> None:
        raise TypeError("unhashable")

    played = Played()

    with pytest.raises(StoreError, match="could not be kept: TypeError: unhashable"):
        play(echo(100), Watched(), at_once=2, keep=buggy, into=played)
    assert len(played.rollouts) <= 4


def test_two_tasks_of_the_same_id_stop_the_run_and_what_was_finished_is_kept() -> None:
    twins = SingleTurnEnv([{**row, "example_id": "twin"} for row in rows(2)], rubric=Rubric(repeats))
    played = Played()

    with pytest.raises(ConfigError, match="'twin'"):
        play(twins, into=played)
    assert [rollout.key for rollout in played.rollouts] == [("twin", 0)]


def test_a_key_refused_before_anything_was_answered_ends_the_run() -> None:
    model = Scripted([AuthError("401: who are you?", status=401)])
    played = Played()

    with pytest.raises(ConfigError, match="who are you"):
        play(echo(100), model, at_once=2, into=played)
    assert not played.rollouts
    assert len(model.requests) <= 3


def test_a_key_refused_later_is_that_rollouts_model_error() -> None:
    script = {"say 2": AuthError("401: who are you?", status=401)}

    played = play(echo(4), script, at_once=1)

    assert played.outcomes == ["scored", "scored", "model_error", "scored"]


def test_a_cancelled_run_keeps_what_was_finished() -> None:
    environment, kept = echo(10), Played()
    slow: dict[str, Any] = {"say 0": "say 0", "": Step(text="late", delay_seconds=30)}
    runner = Runner(
        Player(environment, RunContext(Scripted(slow)), Rules(), kept.events.append),
        kept.events.append,
        kept.rollouts.extend,
    )

    async def run() -> None:
        task = asyncio.create_task(runner.run(Plan(tasks=environment.tasks(), rollouts_per_task=1)))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait({task}, timeout=SECONDS)
        assert task.cancelled()

    run_steadily(run())

    assert [rollout.key for rollout in kept.rollouts] == [(0, 0)]


# Who failed


class Bare:
    """An environment written against the contract alone; what happens in a session is up to the test."""

    traits = Traits()

    def __init__(self, open_session: Callable[[Task], AbstractAsyncContextManager[Session]]) -> None:
        self.open = open_session

    def tasks(self) -> Iterable[Task]:
        return [Task(id=number, prompt=({"role": "user", "content": "hi"},)) for number in range(3)]

    async def check(self) -> None:
        pass

    async def close(self) -> None:
        pass


class Talk:
    """Asks once, and is worth one."""

    def __init__(self, task: Task) -> None:
        self.task = task

    async def play(self, seat: Seat) -> None:
        await seat.complete(self.task.prompt)

    async def score(self, seat: Seat) -> Score:
        return Score(1.0)


class BadTalk(Talk):
    async def play(self, seat: Seat) -> None:
        await super().play(seat)
        if self.task.id == 1:
            raise ConnectionError("the line went dead")


def test_a_session_that_fails_to_open_or_to_close_is_its_own_trouble() -> None:
    @asynccontextmanager
    async def shut(task: Task) -> AsyncIterator[Session]:
        if task.id == 1:
            raise PermissionError("closed today")
        yield Talk(task)

    @asynccontextmanager
    async def jammed(task: Task) -> AsyncIterator[Session]:
        yield Talk(task)
        if task.id == 1:
            raise PermissionError("the door jams")

    opened, closed = play(Bare(shut)), play(Bare(jammed))

    assert opened.outcomes == ["scored", "environment_error", "scored"]
    assert closed.outcomes == ["scored"] * 3
    failure = closed.of(1).cleanup_failure
    assert failure is not None
    assert (failure.kind, failure.message, failure.phase) == ("PermissionError", "the door jams", "cleanup")


def test_what_a_session_swallows_while_closing_is_still_no_score() -> None:
    @asynccontextmanager
    async def discreet(task: Task) -> AsyncIterator[Session]:
        with suppress(ConnectionError):
            yield BadTalk(task)

    played = play(Bare(discreet))

    assert played.outcomes == ["scored", "environment_error", "scored"]
    failure = played.of(1).failure
    assert failure is not None
    assert failure.message == "the line went dead"


def test_an_adapter_may_translate_what_went_wrong_while_closing() -> None:
    @asynccontextmanager
    async def translated(task: Task) -> AsyncIterator[Session]:
        try:
            yield BadTalk(task)
        except ConnectionError as error:
            raise InfraError(f"lost the environment: {error}") from error

    played = play(Bare(translated), max_retries=1)

    failure = played.of(1).failure
    assert failure is not None
    assert failure.kind == "InfraError"
    assert len(played.of(1).earlier) == 1
    assert played.of(1).cleanup_failure is None


def test_an_environment_that_is_lost_while_scoring_stays_lost_however_it_is_explained() -> None:
    class LostTalk(Talk):
        async def score(self, seat: Seat) -> Score:
            raise EnvLostError("nobody answers")

    @asynccontextmanager
    async def explained(task: Task) -> AsyncIterator[Session]:
        try:
            yield LostTalk(task)
        except EnvLostError as error:
            raise InfraError("the container was killed") from error

    environment = Bare(explained)
    environment.traits = Traits(rescores=False)

    rollout = play(environment, max_retries=1).of(1)

    assert rollout.outcome == "environment_error"
    assert [each.failure.message for each in rollout.earlier] == ["the container was killed"]


def test_what_ended_the_play_is_not_hidden_by_what_failed_afterwards() -> None:
    @asynccontextmanager
    async def jammed(task: Task) -> AsyncIterator[Session]:
        try:
            yield BadTalk(task)
        finally:
            if task.id == 1:
                raise PermissionError("the door jams")

    rollout = play(Bare(jammed)).of(1)

    assert rollout.failure is not None
    assert rollout.failure.message == "the line went dead"
    assert rollout.cleanup_failure is not None
    assert rollout.cleanup_failure.message == "the door jams"


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.engine.attempt.CLEANUP_SECONDS", 0.1)
    monkeypatch.setattr("proctor.support.deadlines.AGAIN_SECONDS", 0.1)


class Lingering(SingleTurnEnv):
    """Never finishes cleaning up after the second task."""

    @cleanup
    async def linger(self, state: State) -> None:
        if state["example_id"] == 1:
            await asyncio.sleep(3600)


LINGERING: dict[str, tuple[Any, Outcome]] = {
    "after it was scored": ("say 1", "scored"),
    "after the model failed": (Step(error="refused"), "model_error"),
    "after the rollout was late": (Step(text="say 1", delay_seconds=3600), "model_error"),
    "after the grader failed": ("fail me", "grader_error"),
}


@pytest.mark.parametrize("moment", LINGERING)
def test_a_cleanup_that_never_ends_holds_up_nobody(short_patience: None, moment: str) -> None:
    def strict(completion: Any, answer: str) -> float:
        if completion[-1]["content"] == "fail me":
            raise ValueError("failed")
        return repeats(completion, answer)

    step, outcome = LINGERING[moment]

    played = play(
        Lingering(rows(3), rubric=Rubric(strict)), {"say 1": step}, rollout_seconds=0.3, scoring_seconds=0.3
    )

    assert played.outcomes == ["scored", outcome, "scored"]
    failure = played.of(1).cleanup_failure
    assert failure is not None
    assert failure.message == "closing the session took more than 0.1 s"


def test_a_setup_that_never_ends_and_never_cleans_up_holds_up_nobody(short_patience: None) -> None:
    class Stuck(Lingering):
        async def setup_state(self, state: State) -> None:
            if state["example_id"] == 1:
                await asyncio.sleep(3600)

    played = play(Stuck(rows(3), rubric=Rubric(repeats)), start_seconds=0.1)

    assert played.outcomes == ["scored", "timeout", "scored"]
    failure = played.of(1).failure
    assert failure is not None
    assert failure.message == "starting took more than 0.1 s; give it more with --start-timeout"


def test_somebody_who_does_not_want_to_leave_is_told_again(short_patience: None) -> None:
    class Stubborn(Talk):
        async def play(self, seat: Seat) -> None:
            await super().play(seat)
            if self.task.id == 1:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(3600)
                await asyncio.sleep(3600)

    @asynccontextmanager
    async def opened(task: Task) -> AsyncIterator[Session]:
        yield Stubborn(task)

    assert play(Bare(opened), rollout_seconds=0.1).outcomes == ["scored", "timeout", "scored"]


def test_a_model_that_breaks_its_contract_is_the_one_that_failed() -> None:
    played = play(echo(3), {"say 1": KeyError("choices")})

    assert played.outcomes == ["scored", "model_error", "scored"]
    [call] = played.of(1).trace.calls
    assert call.failure is not None
    assert call.failure.kind == "KeyError"


def test_a_model_error_that_environment_code_raises_over_is_still_the_models() -> None:
    class Wrapping(Talk):
        async def play(self, seat: Seat) -> None:
            try:
                await super().play(seat)
            except RolloutError as error:
                raise RuntimeError("my turn failed") from error

    @asynccontextmanager
    async def opened(task: Task) -> AsyncIterator[Session]:
        yield Wrapping(task)

    played = play(Bare(opened), ["hi", RequestRefusedError("no")], at_once=1)

    assert played.outcomes == ["scored", "model_error", "scored"]


def test_a_rollout_that_takes_too_long_times_out_with_what_it_had_said() -> None:
    class Slow(SingleTurnEnv):
        @stop
        async def never_sure(self, state: State) -> bool:
            await asyncio.sleep(30 if state["example_id"] == 1 and state["completion"] else 0)
            return False

    played = play(Slow(rows(3), rubric=Rubric(repeats)), rollout_seconds=0.1)

    assert played.outcomes == ["scored", "timeout", "scored"]
    rollout = played.of(1)
    assert rollout.failure is not None
    assert rollout.failure.message == "playing took more than 0.1 s; give it more with --timeout"
    assert len(rollout.trace.calls) == 1
    assert rollout.trace.prompt


def test_scoring_that_takes_too_long_times_out() -> None:
    async def slow(state: State) -> float:
        await asyncio.sleep(30 if state["example_id"] == 1 else 0)
        return 1.0

    played = play(SingleTurnEnv(rows(3), rubric=Rubric(slow)), scoring_seconds=0.1)

    assert played.outcomes == ["scored", "timeout", "scored"]


def test_a_timeout_of_the_graders_own_is_not_called_ours() -> None:
    async def impatient(state: State) -> float:
        raise TimeoutError("my own clock")

    @asynccontextmanager
    async def opened(task: Task) -> AsyncIterator[Session]:
        class Own(Talk):
            async def score(self, seat: Seat) -> Score:
                raise TimeoutError("my own clock")

        yield Own(task)

    assert play(SingleTurnEnv(rows(1), rubric=Rubric(impatient))).outcomes == ["grader_error"]
    assert play(Bare(opened), scoring_seconds=60).outcomes == ["grader_error"] * 3


def test_a_rollout_that_asks_to_be_left_out_is_neither_scored_nor_failed() -> None:
    from proctor import ExcludedError

    class Choosy(SingleTurnEnv):
        async def setup_state(self, state: State) -> None:
            if state["example_id"] == 1:
                raise ExcludedError("the puzzle has no solution")

    played = play(Choosy(rows(3), rubric=Rubric(repeats)))

    assert played.outcomes == ["scored", "excluded", "scored"]
    assert played.of(1).score is None


def test_a_score_that_is_no_number_is_the_graders_error() -> None:
    @asynccontextmanager
    async def opened(task: Task) -> AsyncIterator[Session]:
        class Odd(Talk):
            async def score(self, seat: Seat) -> Score:
                return Score(1.0, {"odd": math.inf}) if task.id == 1 else Score(1.0)

        yield Odd(task)

    played = play(Bare(opened))

    assert played.outcomes == ["scored", "grader_error", "scored"]
    failure = played.of(1).failure
    assert failure is not None
    assert failure.kind == GraderError.__name__
