"""What someone who evaluates several environments as one would notice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count, islice
from typing import Any

import pytest

from proctor.contracts import EnvironmentProtocol, Seat, Session, Traits
from proctor.env.echo import EchoEnvironment
from proctor.env.group import EnvGroup
from proctor.env.multi_turn import SingleTurnEnv
from proctor.env.rubric import Rubric
from proctor.env.tool_env import ToolEnv
from proctor.errors import ConfigError, EnvError
from proctor.models.scripted import Step
from proctor.rollout import Rollout, Score
from proctor.task import Task
from proctor.trace import Message, text_of

Play = Callable[..., list[Rollout]]


def rewards(rollouts: Iterable[Rollout]) -> list[float | None]:
    return [rollout.score.reward if rollout.score else None for rollout in rollouts]


class Bare:
    """An environment that shares nothing with ours but the contract."""

    traits = Traits(capacity=3)

    def __init__(self) -> None:
        self.opened: list[Task] = []
        self.closed = False

    def tasks(self) -> Iterator[Task]:
        return (Task(id=f"t{number}", columns={"env": "mine"}) for number in range(2))

    def open(self, task: Task) -> AbstractAsyncContextManager[Session]:
        self.opened.append(task)
        return self.session()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        yield BareSession()

    async def check(self) -> None:
        pass

    async def close(self) -> None:
        self.closed = True


class BareSession:
    async def play(self, seat: Seat) -> None:
        await seat.complete([{"role": "user", "content": "hello"}])

    async def score(self, seat: Seat) -> Score:
        return Score(0.5)


def best_of(completions: list[list[Message]]) -> list[float]:
    """A group is ranked: the longest answer wins."""
    lengths = [len(text_of(completion[-1])) for completion in completions]
    return [float(length == max(lengths)) for length in lengths]


def ranked() -> SingleTurnEnv:
    return SingleTurnEnv([{"question": "rank me"}], rubric=Rubric(best_of), name="ranked")


def test_tasks_of_all_members_are_numbered_through() -> None:
    group = EnvGroup([EchoEnvironment("a", "b"), EchoEnvironment("c")], ["first", "second"])
    tasks = group.tasks()

    assert isinstance(tasks, Sequence)
    assert len(tasks) == 3
    assert [task.id for task in tasks] == [0, 1, 2]
    assert [task.columns for task in tasks] == [
        {"env": "first", "src_id": 0},
        {"env": "first", "src_id": 1},
        {"env": "second", "src_id": 0},
    ]
    assert [task.answer for task in tasks[1:]] == ["b", "c"]
    assert tasks[-1].answer == "c"
    with pytest.raises(IndexError):
        tasks[3]


def test_a_member_without_tasks_is_passed_over() -> None:
    group = EnvGroup([EchoEnvironment(), EchoEnvironment("a"), EchoEnvironment(), EchoEnvironment("b")])

    assert [task.answer for task in group.tasks()] == ["a", "b"]


def test_an_endless_member_is_read_only_as_far_as_needed() -> None:
    made: list[int] = []

    def rows() -> Iterator[dict[str, Any]]:
        for number in count():
            made.append(number)
            yield {"question": str(number)}

    group = EnvGroup([EchoEnvironment("a"), SingleTurnEnv(rows)])
    tasks = group.tasks()

    assert not isinstance(tasks, Sequence)
    assert [task.columns["src_id"] for task in islice(tasks, 3)] == [0, 0, 1]
    assert made == [0, 1]


def test_every_task_is_played_and_scored_by_its_own_member(play: Play) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    def used_tools(example_id: int, task: str, tool_errors: int) -> float:
        assert (example_id, task) == (0, "tools")
        return 1.0 - tool_errors

    tools = ToolEnv([{"question": "sum"}], tools=[add], rubric=Rubric(used_tools), name="tools")
    script = {
        "sum": [Step(tool_calls=[{"name": "add", "arguments": {"a": 1, "b": 1}}]), "2"],
        "say": ["say it", "wrong"],
    }
    rollouts = play(EnvGroup([EchoEnvironment("say it", "say that"), tools]), script, at_once=1)

    assert [rollout.task.columns["env"] for rollout in rollouts] == ["echo", "echo", "tools"]
    assert rewards(rollouts) == [1.0, 0.0, 1.0]
    assert rollouts[2].score is not None
    assert rollouts[2].score.metrics["add_calls"] == 1.0


def test_a_member_sees_its_own_ids_and_columns(play: Play) -> None:
    bare = Bare()
    rollouts = play(EnvGroup([EchoEnvironment("a"), bare], ["echo", "bare"]), ["a"])

    assert [(task.id, task.columns) for task in bare.opened] == [
        ("t0", {"env": "mine"}),
        ("t1", {"env": "mine"}),
    ]
    assert [rollout.task.id for rollout in rollouts] == [0, 1, 2]
    assert [rollout.task.columns["src_id"] for rollout in rollouts] == [0, "t0", "t1"]
    assert rewards(rollouts) == [1.0, 0.5, 0.5]
    assert bare.closed


def test_groups_may_hold_groups(play: Play) -> None:
    inner = EnvGroup([EchoEnvironment("a"), ranked()], ["echo", "ranked"])
    outer = EnvGroup([EchoEnvironment("b"), inner], ["plain", "inner"])
    outermost = EnvGroup([outer, EchoEnvironment("c")], ["outer", "last"])

    rollouts = play(outermost, {"a": "a", "b": "b", "c": "c", "rank me": ["short", "longer"]}, at_once=1)

    assert [rollout.task.columns["env"] for rollout in rollouts] == ["outer", "outer", "outer", "last"]
    assert [rollout.outcome for rollout in rollouts] == ["scored"] * 4
    assert rewards(rollouts) == [1.0, 1.0, 1.0, 1.0]


def test_members_that_rank_and_members_that_do_not_are_scored_side_by_side(play: Play) -> None:
    group = EnvGroup([EchoEnvironment("a"), ranked()])
    assert group.traits.grouped

    script = {"a": ["a", "wrong"], "rank me": ["short", "longer"]}
    rollouts = play(group, script, rollouts_per_task=2, at_once=1)

    assert sorted(reward for reward in rewards(rollouts[:2]) if reward is not None) == [0.0, 1.0]
    assert sorted(reward for reward in rewards(rollouts[2:]) if reward is not None) == [0.0, 1.0]


def test_one_failed_score_leaves_the_others_of_its_group_standing(play: Play) -> None:
    def picky(completion: list[Message]) -> float:
        if text_of(completion[-1]) == "bad":
            raise ValueError("cannot grade this")
        return 1.0

    class PickyBare(Bare):
        def tasks(self) -> Iterator[Task]:
            return iter([Task(id=0)])

        @asynccontextmanager
        async def session(self) -> AsyncIterator[Session]:
            yield PickySession()

    class PickySession(BareSession):
        async def score(self, seat: Seat) -> Score:
            reply = seat.trace.calls[-1].reply
            if reply is not None and reply.text == "bad":
                raise RuntimeError("cannot grade this")
            return Score(1.0)

    single = SingleTurnEnv([{"question": "judge"}], rubric=Rubric(picky))
    group = EnvGroup([single, PickyBare(), ranked()])
    rollouts = play(group, {"": ["good", "bad"]}, rollouts_per_task=2, at_once=1)

    for first in (0, 2):
        pair = rollouts[first : first + 2]
        assert sorted(rollout.outcome for rollout in pair) == ["grader_error", "scored"]
        [failed] = [rollout for rollout in pair if rollout.failure]
        assert failed.failure is not None
        assert "cannot grade this" in failed.failure.message


def test_traits_are_those_of_the_most_demanding_member() -> None:
    class Forgetful(Bare):
        traits = Traits(rescores=False)

    roomy = SingleTurnEnv([], capacity=8)

    assert EnvGroup([EchoEnvironment("a")]).traits == Traits()
    assert EnvGroup([roomy, Bare(), EchoEnvironment("a")]).traits == Traits(capacity=3)
    assert EnvGroup([roomy, Forgetful()]).traits == Traits(rescores=False, capacity=8)


def test_a_member_that_cannot_succeed_is_noticed_before_anything_is_paid_for() -> None:
    class Keyless(Bare):
        async def check(self) -> None:
            raise ConfigError("the judge has no key")

    with pytest.raises(ConfigError, match="the judge has no key"):
        asyncio.run(EnvGroup([EchoEnvironment("a"), EnvGroup([Bare(), Keyless()])]).check())


def test_every_member_is_closed_even_if_one_fails() -> None:
    class Stuck(Bare):
        async def close(self) -> None:
            raise OSError("cannot close")

    first, last = Bare(), Bare()
    with pytest.raises(OSError, match="cannot close"):
        asyncio.run(EnvGroup([first, Stuck(), last]).close())

    assert first.closed
    assert last.closed


def test_settings_reach_all_members() -> None:
    first, second = EchoEnvironment("a"), EchoEnvironment("b")
    group = EnvGroup([EnvGroup([first]), second])
    group.set_concurrency(64)
    group.configure({"pass_threshold": 0.9})

    assert first.threads.most == second.threads.most == 64
    assert first.pass_threshold == second.pass_threshold == 0.9
    with pytest.raises(ConfigError, match="did you mean 'pass_threshold'"):
        group.configure({"pass_treshold": 0.9})


def test_a_setting_that_a_member_cannot_take_is_refused() -> None:
    group = EnvGroup([EchoEnvironment("a"), Bare()])
    group.set_concurrency(64)

    with pytest.raises(ConfigError, match="'Bare' takes no settings, but got max_turns"):
        group.configure({"max_turns": 3})


@pytest.mark.parametrize(
    ("envs", "names", "message"),
    [
        ([], None, "at least one environment"),
        ([EchoEnvironment("a")], ["a", "b"], "1 environments but 2 names"),
        ([EchoEnvironment("a"), EchoEnvironment("b")], ["x", "x"], "are called 'x'"),
    ],
)
def test_a_group_that_cannot_be_is_refused(
    envs: list[EnvironmentProtocol], names: list[str] | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        EnvGroup(envs, names)


def test_members_of_one_name_are_numbered() -> None:
    group = EnvGroup([EchoEnvironment("a"), EchoEnvironment("b"), Bare(), EchoEnvironment("c")])

    assert list(group.members) == ["echo", "echo_2", "Bare", "echo_3"]


def test_a_task_of_someone_else_is_refused() -> None:
    group = EnvGroup([EchoEnvironment("a")])

    with pytest.raises(EnvError, match="no environment 'ecko'; did you mean 'echo'"):
        group.open(Task(id=0, columns={"env": "ecko", "src_id": 0}))
