"""An agent's time: when it is up, the agent leaves, its trace stays, and it is scored on what it did."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from proctor.agents.tool_loop import ToolLoop
from proctor.contracts import Desk
from proctor.engine import desk as desk_module
from proctor.engine import seat as seat_module
from proctor.engine.plan import Plan
from proctor.engine.player import Player, Rules
from proctor.engine.runner import Runner
from proctor.engine.seat import RunContext
from proctor.env.echo import EchoEnvironment
from proctor.env.templates import Environment
from proctor.errors import AgentError, ModelError
from proctor.models.scripted import Scripted, Step
from proctor.report.lines import rollout_line
from proctor.rollout import Rollout
from proctor.store.rows import build_row
from tests.steady_time import run_steadily
from tests.waiting import SECONDS

Yields = AsyncGenerator[Any, str]
Work = Callable[[Desk], Awaitable[str]]

TIME = 0.1
NEVER = 3600.0
SLOW = Step(text="too late", delay_seconds=NEVER)
BUSY = Step(text="", tool_calls=[{"name": "dig", "arguments": {}}])
"""The model answers at once, with the call of a tool that never ends."""


class Working:
    """An agent from a function."""

    def __init__(self, work: Work) -> None:
        self.name = work.__name__
        self._work = work

    async def __call__(self, desk: Desk) -> str:
        return await self._work(desk)


def play(
    environment: Environment,
    work: Work | None = None,
    script: Any = (),
    *,
    leaving: float = 5.0,
    **rules: Any,
) -> list[Rollout]:
    kept: list[Rollout] = []
    agent = ToolLoop() if work is None else Working(work)

    async def run() -> None:
        table = RunContext(Scripted(script), agent=agent, leaving_seconds=leaving)
        given = {"rollout_seconds": TIME, **rules}
        runner = Runner(
            Player(environment, table, Rules(**given), lambda _: None), lambda _: None, kept.extend
        )
        async with asyncio.timeout(SECONDS):
            await runner.run(Plan(tasks=environment.tasks(), rollouts_per_task=1))
        await environment.close()

    run_steadily(run())
    return sorted(kept, key=lambda rollout: str(rollout.key))


def play_one(environment: Environment, work: Work | None = None, script: Any = (), **rules: Any) -> Rollout:
    (rollout,) = play(environment, work, script, **rules)
    return rollout


@pytest.fixture
def heard() -> list[str]:
    """What the template was answered."""
    return []


@pytest.fixture
def env(heard: list[str]) -> Environment:
    """One task; any answer that says yes is right."""
    env = Environment("limits")

    @env.tool
    async def look() -> str:
        return "nothing there"

    @env.tool
    async def dig() -> str:
        await asyncio.sleep(NEVER)
        return "gold"

    @env.template()
    async def ask() -> Yields:
        answer = yield "Is it there?"
        heard.append(answer)
        yield 1.0 if "yes" in answer else 0.25

    ask()
    return env


def calls(*names: str, text: str = "") -> Step:
    return Step(text=text, tool_calls=[{"name": name, "arguments": {}} for name in names])


def assert_scored_at_timeout(rollout: Rollout, reward: float) -> None:
    assert rollout.failure is None
    assert rollout.score is not None
    assert (rollout.outcome, rollout.score.reward) == ("timeout", reward)
    assert rollout.trace.stop_condition == "timeout"
    assert rollout.is_settled


def roles(rollout: Rollout) -> list[str]:
    return [message["role"] for message in rollout.trace.completion]


# What it was doing


def assert_model_error(rollout: Rollout, *words: str) -> None:
    assert (rollout.outcome, rollout.score, rollout.is_settled) == ("model_error", None, False)
    assert rollout.failure is not None
    assert rollout.failure.kind == "ModelTimeoutError"
    assert rollout.failure.transient
    for word in words:
        assert word in rollout.failure.message


def test_a_model_that_stays_silent_until_the_time_is_up_is_not_scored_as_a_failure_of_the_agent(
    env: Environment,
) -> None:
    rollout = play_one(env, script=[SLOW])

    assert_model_error(rollout, "scripted had not answered for", "when the 0.1 s to play were up")


def test_a_model_that_falls_silent_after_it_answered_is_to_blame_too(env: Environment) -> None:
    rollout = play_one(env, script=[calls("look", text="yes, I think"), SLOW])

    assert_model_error(rollout)
    assert roles(rollout) == ["assistant", "tool"]
    answered, cut_off = rollout.trace.calls
    assert answered.reply is not None
    assert cut_off.failure is not None
    assert cut_off.failure.kind == "Cancelled"


def test_a_model_that_answers_all_along_but_too_slowly_is_scored_on_what_it_did(env: Environment) -> None:
    step = Step(text="yes", tool_calls=[{"name": "look", "arguments": {}}], delay_seconds=0.12)

    rollout = play_one(env, ToolLoop(max_steps=99).__call__, [step], rollout_seconds=0.5)

    assert_scored_at_timeout(rollout, 1.0)
    assert len(rollout.trace.calls) > 1


def test_a_model_that_is_overloaded_until_the_time_is_up_is_named_with_its_last_error(
    env: Environment,
) -> None:
    """A program that asks again after each refusal, as command-line agents do."""

    async def insistent(desk: Desk) -> str:
        while True:
            with contextlib.suppress(ModelError):
                await desk.ask()
            await asyncio.sleep(0.01)

    rollout = play_one(env, insistent, [Step(error="timeout", text="503: overloaded")])

    assert_model_error(rollout, "(last error: 503: overloaded)")
    assert len(rollout.trace.calls) > 1


def test_a_rollout_of_an_environment_with_its_own_turns_blames_a_silent_model_too() -> None:
    rollout = play_one(EchoEnvironment("say 1"), script=[SLOW])  # type: ignore[arg-type]

    assert_model_error(rollout, "give it more time with --timeout")


def test_an_agent_that_no_longer_needs_an_answer_is_not_waiting_for_it(env: Environment) -> None:
    """It asks twice, takes the first answer, and works on by itself for too long."""

    async def racing(desk: Desk) -> str:
        asked = [asyncio.ensure_future(desk.ask()) for _ in range(2)]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        for each in asked:
            each.cancel()
        await asyncio.sleep(NEVER)
        return ""

    assert_scored_at_timeout(play_one(env, racing, ["yes", SLOW]), 1.0)


def test_an_agent_that_waits_for_a_tool_is_scored_on_what_it_did(env: Environment, heard: list[str]) -> None:
    rollout = play_one(env, script=[calls("look", "dig", text="yes"), "never asked"])

    assert_scored_at_timeout(rollout, 1.0)
    assert heard == ["yes"]
    assert roles(rollout) == ["assistant", "tool"]
    assert rollout.trace.completion[-1]["content"] == "nothing there"


def test_an_agent_that_has_said_nothing_is_scored_on_nothing(env: Environment, heard: list[str]) -> None:
    assert_scored_at_timeout(play_one(env, script=[BUSY]), 0.25)
    assert heard == [""]


def test_an_agent_that_was_done_in_time_is_not_late(env: Environment) -> None:
    rollout = play_one(env, script=["yes"], rollout_seconds=60.0)

    assert (rollout.outcome, rollout.trace.stop_condition) == ("scored", None)


def test_an_answer_in_the_same_moment_as_the_deadline_is_in_time(
    env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock strikes while the agent's task is done and nobody has heard of it yet."""

    async def last_moment(desk: Desk) -> str:
        seat = desk._seat  # type: ignore[attr-defined]
        asyncio.get_running_loop().call_soon(seat.clock.expire)
        return "yes"

    rollout = play_one(env, last_moment, rollout_seconds=60.0)

    assert rollout.outcome == "scored"


# What it does about it


def test_an_agent_may_answer_when_it_is_told_to_leave(env: Environment, heard: list[str]) -> None:
    async def prepared(desk: Desk) -> str:
        try:
            await asyncio.sleep(NEVER)
        except asyncio.CancelledError:
            return "yes, as far as I got"
        return "no"

    assert_scored_at_timeout(play_one(env, prepared), 1.0)
    assert heard == ["yes, as far as I got"]


def test_what_an_agent_raises_when_it_is_told_to_leave_does_not_matter(env: Environment) -> None:
    async def clumsy(desk: Desk) -> str:
        desk.add({"role": "assistant", "content": "yes"})
        try:
            await asyncio.sleep(NEVER)
        finally:
            raise OSError("I fell over my feet")

    assert_scored_at_timeout(play_one(env, clumsy), 1.0)


def test_what_an_agent_says_on_its_way_out_is_kept(env: Environment) -> None:
    async def tidy(desk: Desk) -> str:
        try:
            await asyncio.sleep(NEVER)
        finally:
            desk.add({"role": "assistant", "content": "yes, probably"})
            desk.ended_by("tidied up")
        return ""

    assert_scored_at_timeout(play_one(env, tidy), 1.0)


def test_an_agent_with_a_group_of_helpers_leaves_with_all_of_them(env: Environment) -> None:
    left: list[str] = []

    async def helper(desk: Desk, name: str) -> None:
        try:
            await desk.use({"id": name, "name": "dig", "arguments": "{}"})
        finally:
            left.append(name)

    async def leader(desk: Desk) -> str:
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b"):
                group.create_task(helper(desk, name))
        return "dug"

    assert_scored_at_timeout(play_one(env, leader), 0.25)
    assert sorted(left) == ["a", "b"]


@pytest.mark.parametrize("in_a_helper", [False, True])
def test_an_agent_that_will_not_leave_is_left_behind_and_writes_in_no_trace(
    env: Environment, in_a_helper: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_module, "LATE_CALL_SECONDS", 0.01)
    let_go = asyncio.Event()
    turned_away: list[str] = []

    async def stay(desk: Desk) -> str:
        desk.add({"role": "assistant", "content": "yes"})
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                desk.add({"role": "assistant", "content": "not yet"})
        desk.add({"role": "assistant", "content": "far too late"})
        desk.ended_by("itself")
        try:
            await desk.ask()
        except Exception as error:
            turned_away.append(str(error))
        return "far too late"

    async def stubborn(desk: Desk) -> str:
        if in_a_helper:
            return "".join(await asyncio.gather(stay(desk)))
        return await stay(desk)

    waited = asyncio.Event()

    @env.template()
    async def second(number: int = 0) -> Yields:
        answer = yield "Is it there?"
        let_go.set()
        while not turned_away:
            await asyncio.sleep(0.01)
        waited.set()
        yield 1.0 if answer == "not yet" else 0.25

    second()
    env._minted = {task.slug: task for task in env._minted.values() if task.template == "second"}
    with caplog.at_level(logging.WARNING, "proctor"):
        rollout = play_one(env, stubborn, leaving=0.1)

    assert_scored_at_timeout(rollout, 1.0)
    assert waited.is_set()
    assert [message["content"] for message in rollout.trace.completion] == ["yes", "not yet"]
    assert rollout.trace.calls == []
    assert turned_away == ["the agent's time is up"]
    assert "stubborn did not stop within 0.1 s" in caplog.text


def test_a_row_of_an_agent_that_was_left_behind_tells_its_calls_by_their_place(
    env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_module, "LATE_CALL_SECONDS", 0.01)

    async def stubborn(desk: Desk) -> str:
        await desk.ask()
        try:
            await asyncio.sleep(NEVER)
        except asyncio.CancelledError:
            await asyncio.sleep(0.3)
        return ""

    rollout = play_one(env, stubborn, ["yes"], leaving=0.05)

    assert_scored_at_timeout(rollout, 1.0)
    [call] = build_row(rollout)["model_calls"]
    assert (call.messages, call.reply) == (1, 1)


def test_an_agent_that_cancels_itself_has_failed_by_itself(env: Environment) -> None:
    async def confused(desk: Desk) -> str:
        raise asyncio.CancelledError

    rollout = play_one(env, confused)

    assert rollout.outcome == "agent_error"
    assert rollout.failure is not None
    assert rollout.failure.message == "confused raised CancelledError although it was not cancelled"


@pytest.mark.parametrize("leave", [SystemExit("enough"), KeyboardInterrupt()])
def test_an_agent_that_exits_ends_its_own_rollout_and_no_other(
    env: Environment, leave: BaseException
) -> None:
    async def leaver(desk: Desk) -> str:
        raise leave

    rollout = play_one(env, leaver)

    assert rollout.outcome == "agent_error"
    assert rollout.failure is not None
    assert rollout.failure.kind == AgentError.__name__


# What the environment does then


def test_a_task_of_several_turns_asks_nobody_any_more(env: Environment) -> None:
    heard: list[str] = []
    env._minted.clear()

    @env.template()
    async def talk() -> Yields:
        for number in range(3):
            answer = yield f"question {number}"
            heard.append(answer)
        yield 0.5

    talk()
    rollout = play_one(env, script={"question 0": "yes", "question 1": BUSY, "question 2": "never"})

    assert_scored_at_timeout(rollout, 0.5)
    assert heard == ["yes", "", ""]
    assert rollout.score is not None
    assert rollout.score.metrics["num_turns"] == 2.0
    assert [message["content"] for message in rollout.trace.completion] == ["yes", "question 1", ""]


def test_scoring_after_the_time_was_up_has_its_own_time(env: Environment) -> None:
    env._minted.clear()

    @env.template()
    async def slow_to_judge() -> Yields:
        yield "?"
        await asyncio.sleep(3 * TIME)
        yield 0.5

    slow_to_judge()

    assert_scored_at_timeout(play_one(env, script=[BUSY], scoring_seconds=60.0), 0.5)
    late = play_one(env, script=[BUSY], scoring_seconds=TIME)
    assert late.outcome == "timeout"
    assert not late.is_settled
    assert late.failure is not None
    assert late.failure.phase == "scoring"
    assert late.failure.message == "scoring took more than 0.1 s; give it more with --scoring-timeout"


def test_a_grader_that_fails_after_the_time_was_up_is_a_grader_error(env: Environment) -> None:
    env._minted.clear()

    @env.template()
    async def broken() -> Yields:
        yield "?"
        raise ValueError("no idea")

    broken()
    rollout = play_one(env, script=[BUSY])

    assert rollout.outcome == "grader_error"
    assert rollout.score is None
    assert rollout.trace.stop_condition == "timeout"


def test_environment_code_that_goes_on_for_too_long_after_the_time_was_up_is_an_error(
    env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seat_module, "ENDING_SECONDS", 0.1)
    monkeypatch.setattr(env, "open", lambda task: Dawdling(type(env).open(env, task)))

    rollout = play_one(env, script=[BUSY])

    assert (rollout.outcome, rollout.score) == ("timeout", None)
    assert rollout.failure is not None
    assert rollout.failure.phase == "generation"
    assert rollout.failure.message == (
        "the environment took more than 0.1 s to continue after the agent's time was up"
    )


class Dawdling:
    """A session that drives the agent twice, and then finds no end."""

    def __init__(self, session: Any) -> None:
        self.session = session

    async def __aenter__(self) -> Dawdling:
        await self.session.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.session.__aexit__(*error)

    async def play(self, seat: Any) -> None:
        await self.session.play(seat)
        assert await seat.drive([{"role": "user", "content": "And now?"}]) == ""
        await asyncio.sleep(NEVER)


def test_time_that_runs_out_in_the_environments_own_code_is_no_answer_of_the_agent(env: Environment) -> None:
    env._minted.clear()

    @env.template()
    async def pensive() -> Yields:
        for _ in range(2):
            yield "?"
            await asyncio.sleep(NEVER)
        yield 1.0

    pensive()
    rollout = play_one(env, script=["yes"])

    assert (rollout.outcome, rollout.score) == ("timeout", None)
    assert rollout.failure is not None
    assert rollout.failure.message == "playing took more than 0.1 s; give it more with --timeout"


def test_the_time_to_start_is_not_the_time_to_play(env: Environment) -> None:
    env._minted.clear()

    @env.template()
    async def slow_to_start() -> Yields:
        await asyncio.sleep(2 * TIME)
        yield "?"
        yield 1.0

    slow_to_start()

    assert play_one(env, script=["yes"], start_seconds=60.0).outcome == "scored"
    late = play_one(env, script=["yes"], start_seconds=TIME, rollout_seconds=60.0)
    assert late.failure is not None
    assert (late.failure.phase, late.outcome) == ("setup", "timeout")
    assert late.failure.message == "starting took more than 0.1 s; give it more with --start-timeout"


# Whoever else ends it


@pytest.mark.parametrize("at_the_deadline", [False, True])
def test_a_run_that_is_stopped_while_an_agent_works_stays_stopped(
    env: Environment, at_the_deadline: bool
) -> None:
    kept: list[Rollout] = []
    working = asyncio.Event()
    left: list[str] = []
    clocks: list[Any] = []

    async def patient(desk: Desk) -> str:
        clocks.append(desk._seat.clock)  # type: ignore[attr-defined]
        working.set()
        try:
            await asyncio.sleep(NEVER)
        finally:
            left.append("agent")
        return ""

    async def run() -> None:
        table = RunContext(Scripted(), agent=Working(patient))
        player = Player(env, table, Rules(rollout_seconds=60.0), lambda _: None)
        runner = Runner(player, lambda _: None, kept.extend)
        running = asyncio.create_task(runner.run(Plan(tasks=env.tasks(), rollouts_per_task=1)))
        await working.wait()
        if at_the_deadline:
            clocks[0].expire()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run_steadily(run())

    assert left == ["agent"]
    assert kept == []


def test_an_environment_may_lose_its_patience_first(env: Environment) -> None:
    class Impatient(Dawdling):
        async def play(self, seat: Any) -> None:
            try:
                async with asyncio.timeout(0.05):
                    await self.session.play(seat)
            except TimeoutError:
                seat.trace.stop_condition = "impatience"

        async def score(self, seat: Any) -> Any:
            return await self.session.score(seat)

    opened = env.open
    env.open = lambda task: Impatient(opened(task))  # type: ignore[method-assign,assignment,return-value]

    rollout = play_one(env, script=[BUSY], rollout_seconds=60.0)

    assert (rollout.outcome, rollout.trace.stop_condition) == ("scored", "impatience")


# What is told of it


def test_a_report_counts_it_among_the_scored(env: Environment) -> None:
    line = rollout_line(play_one(env, script=[BUSY]))

    assert (line.outcome, line.reward, line.error, line.is_settled) == ("timeout", 0.25, None, True)
