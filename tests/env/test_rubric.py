"""Reward functions as authors write them, and the scores that come of them."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from proctor import ExcludedError, Parser, Rubric, RubricGroup, Scripted, SingleTurnEnv, State, ThinkParser
from proctor.errors import ConfigError, InfraError
from proctor.rollout import Rollout
from proctor.trace import Message
from tests.env.playing import reward
from tests.waiting import SECONDS

Play = Callable[..., list[Rollout]]

ROW: Mapping[str, Any] = {"question": "Why?", "answer": "because", "info": {"level": 3}, "topic": "causes"}


def scored(
    play: Play, rubric: Rubric, said: Any = "so", row: Mapping[str, Any] = ROW, **more: Any
) -> Rollout:
    (rollout,) = play(SingleTurnEnv([ROW], rubric=rubric, **more), [said])
    return rollout


def metrics(rollout: Rollout) -> dict[str, float]:
    assert rollout.score is not None, rollout.failure
    return rollout.score.metrics


def complaint(rollout: Rollout) -> str:
    assert rollout.outcome == "grader_error"
    assert rollout.score is None
    assert rollout.failure is not None
    return rollout.failure.message


# What a function may ask for


def test_a_function_is_given_what_it_asks_for_by_name(play: Play) -> None:
    given: dict[str, Any] = {}

    def curious(
        prompt: list[Message],
        completion: list[Message],
        answer: str,
        info: dict[str, Any],
        state: State,
        task: str,
        example_id: int,
        topic: str,
        parser: Parser,
        *,
        turn: int,
        absent: str = "by default",
    ) -> float:
        given.update(locals())
        return 1.0

    assert reward(scored(play, Rubric(curious))) == 1.0
    assert given["prompt"] == [{"role": "user", "content": "Why?"}]
    assert given["completion"] == [{"role": "assistant", "content": "so"}]
    assert (given["answer"], given["info"]) == ("because", {"level": 3})
    assert (given["topic"], given["example_id"], given["turn"]) == ("causes", 0, 1)
    assert given["absent"] == "by default"
    assert given["task"] == "SingleTurnEnv"
    assert isinstance(given["parser"], Parser)
    assert isinstance(given["state"], State)
    assert given["state"]["stop_condition"] == "max_turns_reached"


def test_a_function_with_double_stars_is_given_everything(play: Play) -> None:
    given: dict[str, Any] = {}

    def greedy(completion: list[Message], **others: Any) -> float:
        given.update(others)
        return 1.0

    scored(play, Rubric(greedy, objects={"scale": 2}))

    assert given.keys() >= {"prompt", "answer", "info", "state", "topic", "parser", "scale"}


def test_objects_are_shared_and_what_the_rollout_has_comes_first(play: Play) -> None:
    def told(scale: float, answer: str) -> float:
        return scale if answer == "because" else 0.0

    rubric = Rubric(told, objects={"scale": 2.5, "answer": "not this"})
    rubric.add_object("unused", object())

    assert reward(scored(play, rubric)) == 2.5


def test_a_function_that_asks_for_what_nobody_has_is_told_what_there_is(play: Play) -> None:
    def hopeful(completion: list[Message], oracle: object) -> float:
        return 1.0

    class Mysterious(SingleTurnEnv):
        async def setup_state(self, state: State) -> None:
            """It might have put an oracle there."""

    [rollout] = play(Mysterious([ROW], rubric=Rubric(hopeful)), ["so"])
    message = complaint(rollout)

    assert "reward function 'hopeful' asks for oracle, and there is only: " in message
    assert "completion" in message


class Untouched(Scripted):
    """A model that nobody may ask."""

    async def complete(self, request: Any) -> Any:
        raise AssertionError("a paid call was made")


@pytest.mark.parametrize("is_group", [False, True])
def test_a_misspelt_argument_is_refused_before_the_first_call(play: Play, is_group: bool) -> None:
    def close_to(completion: Any, anwser: str) -> float:
        return 1.0

    def compare(completions: list[Any], anwsers: list[str]) -> list[float]:
        return [1.0] * len(completions)

    rubric = Rubric(compare if is_group else close_to)
    with pytest.raises(ConfigError, match=r"asks for 'anwsers?', which no .*; did you mean 'answer'"):
        play(SingleTurnEnv([ROW], rubric=rubric), Untouched())


def test_an_argument_that_the_authors_own_code_may_provide_is_no_mistake(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    def first(state: State) -> float:
        state["anwser"] = "so"
        return 0.0

    def second(anwser: str) -> float:
        return float(anwser == "so")

    class Prepared(SingleTurnEnv):
        async def setup_state(self, state: State) -> None:
            state["anwser"] = "so"

    [left] = play(SingleTurnEnv([ROW], rubric=Rubric(first, second)), ["so"])
    assert reward(left) == 1.0
    [prepared] = play(Prepared([ROW], rubric=Rubric(second)), ["so"])
    assert reward(prepared) == 1.0
    assert "did you mean 'answer' or 'parser'? It cannot score unless your code adds it" in caplog.text


def test_a_column_that_any_of_the_first_tasks_has_is_known(play: Play) -> None:
    def graded(level: int = 0) -> float:
        return float(level)

    def needs(level: int) -> float:
        return float(level)

    rows = [{**ROW, "level": 2}, ROW]
    assert [reward(each) for each in play(SingleTurnEnv(rows, rubric=Rubric(graded)), ["so"])] == [2.0, 0.0]
    outcomes = [each.outcome for each in play(SingleTurnEnv(rows, rubric=Rubric(needs)), ["so"])]
    assert outcomes == ["scored", "grader_error"]


def test_methods_partials_and_callable_objects_are_functions_too(play: Play) -> None:
    class Judge:
        def as_method(self, answer: str) -> float:
            return float(answer == "because")

        async def __call__(self, answer: str) -> float:
            return 0.5

    def scaled(answer: str, scale: float) -> float:
        return scale

    rollout = scored(play, Rubric(Judge().as_method, Judge(), functools.partial(scaled, scale=0.25)))

    assert metrics(rollout) == {"as_method": 1.0, "Judge": 0.5, "scaled": 0.25}
    assert reward(rollout) == 1.75


# Weights and metrics


def one() -> float:
    return 1.0


async def half() -> float:
    return 0.5


def two() -> int:
    return 2


def yes() -> bool:
    return True


def test_the_reward_is_the_weighted_sum_and_every_function_is_a_metric(play: Play) -> None:
    rubric = Rubric(one, half, two, yes, weights=[1.0, 0.5, 0.0, -2.0])

    rollout = scored(play, rubric)

    assert reward(rollout) == pytest.approx(1.0 + 0.25 + 0.0 - 2.0)
    assert metrics(rollout) == {"one": 1.0, "half": 0.5, "two": 2.0, "yes": 1.0}


def test_functions_may_be_given_one_by_one_or_as_a_list_or_later(play: Play) -> None:
    rubric = Rubric(one, funcs=[half])
    rubric.add_reward_func(two, weight=0.1)
    rubric.add_metric(yes)

    rollout = scored(play, rubric)

    assert reward(rollout) == pytest.approx(1.7)
    assert list(metrics(rollout)) == ["one", "half", "two", "yes"]


def test_without_functions_the_reward_is_nothing(play: Play) -> None:
    assert reward(scored(play, Rubric())) == 0.0


def test_mistakes_in_a_rubric_are_found_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="2 functions but 1 weights; give one weight for each"):
        Rubric(one, half, weights=[1.0])
    with pytest.raises(TypeError, match="a reward function is a function, not float"):
        Rubric(one, 1.0)  # type: ignore[arg-type]


def test_functions_of_one_name_are_all_counted_and_told_apart(play: Play) -> None:
    rubric = Rubric([lambda completion: 1.0, lambda completion: 0.5, one], [1.0, 2.0, 0.0])

    assert [function.name for function in rubric.functions] == ["<lambda>", "<lambda>_2", "one"]


def test_a_later_function_sees_what_an_earlier_one_left(play: Play) -> None:
    order: list[str] = []

    def first(state: State) -> float:
        order.append("first")
        state["found"] = 3.0
        return 0.0

    async def second(state: State) -> float:
        order.append("second")
        state["found"] += 1
        return 0.0

    def third(found: float) -> float:
        order.append("third")
        return found

    assert reward(scored(play, Rubric(first, second, third))) == 4.0
    assert order == ["first", "second", "third"]


def test_the_state_holds_the_score_afterwards(play: Play) -> None:
    env = SingleTurnEnv([ROW], rubric=Rubric(one))

    (rollout,) = play(env, ["so"], columns=("reward", "metrics"))

    assert rollout.columns == {"reward": 1.0, "metrics": {"one": 1.0}}


# What is no score


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("good", "reward function 'odd' returned str 'good'; a score is a number"),
        (None, "returned NoneType None"),
        (float("nan"), "returned nan; a score is a finite number"),
        (float("inf"), "returned inf"),
        (1e308, "returned 1e+308; a score is a finite number from -1e+100 to 1e+100"),
        (-1e308, "returned -1e+308"),
        (10**400, "returned an integer of 1329 bits"),
        (10**5000, "returned an integer of"),
        ([1.0], "returned list [1.0]"),
    ],
    ids=["text", "nothing", "nan", "infinite", "huge", "huge below", "long integer", "longer", "list"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
def test_a_function_that_returns_no_number_is_a_grader_error(
    play: Play, value: Any, said: str, is_async: bool
) -> None:
    def odd() -> Any:
        return value

    async def async_odd() -> Any:
        return value

    async_odd.__name__ = "odd"

    assert said in complaint(scored(play, Rubric(one, async_odd if is_async else odd)))


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
def test_a_function_that_raises_is_a_grader_error_that_names_it(play: Play, is_async: bool) -> None:
    def broken() -> float:
        raise KeyError("missing")

    async def async_broken() -> float:
        raise KeyError("missing")

    async_broken.__name__ = "broken"

    rollout = scored(play, Rubric(async_broken if is_async else broken))

    assert complaint(rollout) == "reward function 'broken' raised KeyError: 'missing'"
    assert rollout.failure is not None
    assert rollout.failure.chain == "GraderError -> KeyError"


def test_a_function_may_leave_a_rollout_out(play: Play) -> None:
    def fair() -> float:
        raise ExcludedError("the question was ambiguous")

    rollout = scored(play, Rubric(fair))

    assert (rollout.outcome, rollout.score) == ("excluded", None)


def test_scoring_is_tried_again_where_the_failure_may_pass_and_the_model_is_not_asked_again(
    play: Play,
) -> None:
    tries: list[int] = []

    def flaky() -> float:
        tries.append(1)
        if len(tries) < 3:
            raise InfraError("the sandbox is asleep")
        return 1.0

    (rollout,) = play(
        SingleTurnEnv([ROW], rubric=Rubric(flaky)), ["so"], max_retries=2, first_wait_seconds=0.001
    )

    assert reward(rollout) == 1.0
    assert [attempt.failure.message for attempt in rollout.earlier] == ["the sandbox is asleep"] * 2
    assert len(rollout.trace.calls) == 1


# Groups


def test_a_group_function_sees_all_rollouts_of_a_task_and_only_those(play: Play) -> None:
    sizes: list[tuple[int, ...]] = []

    def rank(completions: list[list[Message]], answers: list[str], states: list[State]) -> list[float]:
        sizes.append((len(completions), len(answers), len(states)))
        assert len({state["example_id"] for state in states}) == 1
        return [float(place) for place in range(len(completions))]

    env = SingleTurnEnv([ROW, {**ROW, "question": "How?"}], rubric=Rubric(rank, one, weights=[1.0, 0.5]))
    assert env.traits.grouped

    rollouts = play(env, ["so"], rollouts_per_task=3)

    assert sizes == [(3, 3, 3)] * 2
    assert sorted(map(reward, rollouts)) == [0.5, 0.5, 1.5, 1.5, 2.5, 2.5]
    assert {rollout.group_size for rollout in rollouts} == {3}
    assert metrics(rollouts[0]).keys() == {"rank", "one"}


def test_a_function_that_returns_a_list_is_a_group_function_and_may_ask_for_objects(play: Play) -> None:
    async def compare(topics: list[str], scale: float) -> list[float]:
        assert topics == ["causes", "causes"]
        return [scale] * len(topics)

    env = SingleTurnEnv([ROW], rubric=Rubric(compare, objects={"scale": 0.5}))

    assert list(map(reward, play(env, ["so"], rollouts_per_task=2))) == [0.5, 0.5]


def test_only_what_was_played_is_compared(play: Play) -> None:
    def count(completions: list[list[Message]]) -> list[float]:
        return [float(len(completions))] * len(completions)

    class Shaky(SingleTurnEnv):
        async def setup_state(self, state: State) -> None:
            self.opened = getattr(self, "opened", 0) + 1
            if self.opened == 2:
                raise ValueError("no")

    rollouts = play(Shaky([ROW], rubric=Rubric(count)), ["so"], rollouts_per_task=3)

    assert sorted(rollout.outcome for rollout in rollouts) == ["environment_error", "scored", "scored"]
    assert {rollout.score.reward for rollout in rollouts if rollout.score} == {2.0}


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ([1.0], "group reward function 'compare' must return a list of 2 numbers"),
        (1.0, "must return a list of 2 numbers"),
        ([1.0, "good"], "group reward function 'compare' returned str 'good'"),
    ],
    ids=["too short", "no list", "no number"],
)
def test_a_group_function_that_returns_no_list_of_numbers_fails_the_whole_group(
    play: Play, result: Any, said: str
) -> None:
    def compare(completions: list[list[Message]]) -> Any:
        return result

    rollouts = play(SingleTurnEnv([ROW], rubric=Rubric(compare)), ["so"], rollouts_per_task=2)

    assert all(said in complaint(rollout) for rollout in rollouts)


def test_in_a_group_one_rollout_s_own_failure_is_its_alone(play: Play) -> None:
    def compare(completions: list[list[Message]]) -> list[float]:
        return [1.0] * len(completions)

    def own(completion: list[Message]) -> float:
        if completion[-1]["content"] == "bad":
            raise ValueError("ugh")
        return 0.0

    rollouts = play(SingleTurnEnv([ROW], rubric=Rubric(own, compare)), ["good", "bad"], rollouts_per_task=2)

    assert sorted(rollout.outcome for rollout in rollouts) == ["grader_error", "scored"]


# Rubrics together


def test_a_group_of_rubrics_adds_their_rewards_and_keeps_all_their_metrics(play: Play) -> None:
    rubric = RubricGroup([Rubric(one, half), Rubric(one, two, weights=[0.0, 0.5])])

    rollout = scored(play, rubric)

    assert reward(rollout) == pytest.approx(1.5 + 1.0)
    assert metrics(rollout) == {"one": 1.0, "half": 0.5, "one_2": 1.0, "two": 2.0}


def test_a_group_of_rubrics_hands_functions_and_objects_on(play: Play) -> None:
    def scaled(scale: float) -> float:
        return scale

    rubric = RubricGroup([Rubric(), Rubric(scaled)])
    rubric.add_object("scale", 3.0)
    rubric.add_reward_func(one, 2.0)
    rubric.add_metric(yes)

    rollout = scored(play, rubric)

    assert reward(rollout) == 5.0
    assert metrics(rollout) == {"one": 1.0, "yes": 1.0, "scaled": 3.0}
    with pytest.raises(ValueError, match="cannot take a function"):
        RubricGroup([]).add_reward_func(one)


def test_a_group_of_rubrics_may_compare_rollouts(play: Play) -> None:
    def compare(completions: list[list[Message]]) -> list[float]:
        return [10.0] * len(completions)

    env = SingleTurnEnv([ROW], rubric=RubricGroup([Rubric(one), Rubric(compare)]))

    assert env.traits.grouped
    assert env.rubric.group_functions == ["compare"]
    assert list(map(reward, play(env, ["so"], rollouts_per_task=2))) == [11.0, 11.0]


def test_in_a_group_of_rubrics_the_first_failure_counts(play: Play) -> None:
    def broken() -> float:
        raise ValueError("ugh")

    assert "'broken' raised ValueError" in complaint(scored(play, RubricGroup([Rubric(one), Rubric(broken)])))


# Parsers


def test_the_parser_of_the_environment_is_that_of_its_rubric(play: Play) -> None:
    def last_word(parser: Parser, completion: list[Message]) -> float:
        return float(parser.parse_answer(completion) == "42")

    for rubric in (Rubric(last_word), RubricGroup([Rubric(), Rubric(last_word)])):
        rollout = scored(play, rubric, "<think>6 x 7</think>42", parser=ThinkParser())
        assert reward(rollout) == 1.0


def test_a_rubric_made_with_a_parser_keeps_it(play: Play) -> None:
    seen: list[Parser] = []

    def look(parser: Parser) -> float:
        seen.append(parser)
        return 0.0

    own = ThinkParser()
    scored(play, Rubric(look, parser=own), parser=Parser())

    assert seen == [own]


# Blocking functions


def test_blocking_functions_run_beside_each_other_and_never_stall_the_loop(play: Play) -> None:
    threads: set[int] = set()
    all_at_once = threading.Barrier(8, timeout=SECONDS)

    def meeting() -> float:
        threads.add(threading.get_ident())
        all_at_once.wait()
        return 1.0

    rows = [{"question": f"q {number}"} for number in range(8)]

    rollouts = play(SingleTurnEnv(rows, rubric=Rubric(meeting)), ["so"])

    assert [rollout.outcome for rollout in rollouts] == ["scored"] * 8
    assert threading.get_ident() not in threads


def test_a_blocking_function_sees_the_context_of_its_rollout(play: Play) -> None:
    wanted: contextvars.ContextVar[str] = contextvars.ContextVar("wanted", default="nothing")

    class Marked(SingleTurnEnv):
        async def setup_state(self, state: State) -> None:
            wanted.set(str(state["example_id"]))

    def marked(example_id: int) -> float:
        return float(wanted.get() == str(example_id))

    rows = [{"question": f"q {number}"} for number in range(5)]

    assert [reward(rollout) for rollout in play(Marked(rows, rubric=Rubric(marked)), ["so"])] == [1.0] * 5


def test_a_function_that_blocks_for_good_is_given_up_and_its_siblings_are_not(play: Play) -> None:
    released = threading.Event()

    def stuck(example_id: int) -> float:
        if example_id == 1:
            released.wait(SECONDS)
        return 1.0

    rows = [{"question": f"q {number}"} for number in range(4)]
    try:
        rollouts = play(SingleTurnEnv(rows, rubric=Rubric(stuck)), ["so"], scoring_seconds=0.5)
    finally:
        released.set()

    assert [rollout.outcome for rollout in rollouts] == ["scored", "timeout", "scored", "scored"]


def test_a_blocking_function_may_return_something_to_wait_for(play: Play) -> None:
    async def later() -> float:
        await asyncio.sleep(0)
        return 0.25

    def deferred(completion: Sequence[Message]) -> Any:
        return later()

    async def compared(completions: list[list[Message]]) -> list[float]:
        return [await later() for _ in completions]

    (rollout,) = play(SingleTurnEnv([ROW], rubric=Rubric(compared, deferred)), ["so"])

    assert reward(rollout) == 0.5
