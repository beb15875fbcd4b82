"""Environments written as generators: ask on one line, score on the next."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pytest

from proctor.contracts import Desk
from proctor.engine.plan import Plan
from proctor.engine.player import Player, Rules
from proctor.engine.runner import Runner
from proctor.engine.seat import RunContext
from proctor.env.graders import combine, exact, part
from proctor.env.templates import Environment
from proctor.env.yields import count_yields
from proctor.errors import ConfigError, ContextTooLongError, EnvError, ModelTimeoutError
from proctor.models.scripted import Scripted, Step
from proctor.rollout import Rollout, Score, Subscore
from proctor.store.rows import build_row
from proctor.task import Task
from tests.steady_time import run_steadily

Yields = AsyncGenerator[Any, str]


class ToolLoop:
    """Asks until the model calls no more tools."""

    name = "tool loop"

    async def __call__(self, desk: Desk) -> str:
        for _ in range(10):
            reply = await desk.ask()
            if not reply.tool_calls:
                return reply.text
            for call in reply.tool_calls:
                await desk.use(call)
        return ""


def play(
    environment: Environment, script: Any = (), tasks: Sequence[Task] | None = None, **rules: Any
) -> list[Rollout]:
    """Play tasks, or all that were minted, as a run plays them."""
    kept: list[Rollout] = []
    model = script if isinstance(script, Scripted) else Scripted(script)

    async def run() -> None:
        try:
            table = RunContext(model, agent=ToolLoop())
            runner = Runner(
                Player(environment, table, Rules(**rules), lambda _: None), lambda _: None, kept.extend
            )
            await runner.run(Plan(tasks=environment.tasks() if tasks is None else tasks, rollouts_per_task=1))
        finally:
            await environment.close()

    run_steadily(run())
    return sorted(kept, key=lambda rollout: str(rollout.key))


def play_one(environment: Environment, script: Any = (), **rules: Any) -> Rollout:
    (rollout,) = play(environment, script, **rules)
    return rollout


@pytest.fixture
def env() -> Environment:
    return Environment("letters")


def asked(rollout: Rollout) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in rollout.trace.prompt]


# Two yields


def test_the_first_yield_asks_and_the_last_one_scores(env: Environment) -> None:
    @env.template()
    async def count(word: str, letter: str = "r") -> Yields:
        answer = yield f"How many {letter} in {word}?"
        yield 1.0 if answer == str(word.count(letter)) else 0.0

    right, wrong = count(word="strawberry"), count("banana", letter="a")
    by_task = {rollout.task.id: rollout for rollout in play(env, {"strawberry": "3", "banana": "4"})}

    assert by_task[right.id].score == Score(1.0)
    assert by_task[wrong.id].score == Score(0.0)
    assert asked(by_task[wrong.id]) == [("user", "How many a in banana?")]
    assert by_task[right.id].trace.completion[-1]["content"] == "3"


@pytest.mark.parametrize(
    ("prompt", "messages"),
    [
        ("hello", [("user", "hello")]),
        ({"role": "user", "content": "hello"}, [("user", "hello")]),
        (
            [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
            [("system", "be brief"), ("user", "hello")],
        ),
        ([{"role": "system", "content": "be brief"}, "hello"], [("system", "be brief"), ("user", "hello")]),
    ],
)
def test_a_prompt_is_a_text_or_messages_and_a_system_message_stays_one(
    env: Environment, prompt: Any, messages: Any
) -> None:
    @env.template()
    async def greet() -> Yields:
        yield prompt
        yield 1

    greet()

    assert asked(play_one(env)) == messages


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("", "empty prompt"),
        ([], "empty prompt"),
        (5, "yielded 5 as its prompt"),
        ({"content": "x"}, "as its prompt"),
        ({"role": "robot", "content": "x"}, "a role is one of"),
        ({"role": "user"}, "without content"),
    ],
)
def test_what_is_no_prompt_is_the_environments_fault(env: Environment, prompt: Any, said: str) -> None:
    @env.template()
    async def greet() -> Yields:
        yield prompt
        yield 1.0

    greet()
    rollout = play_one(env)

    assert rollout.outcome == "environment_error"
    assert rollout.failure is not None
    assert said in rollout.failure.message


@pytest.mark.parametrize(
    ("reward", "score"),
    [
        (1, Score(1.0)),
        (0.25, Score(0.25)),
        (Score(0.5, {"length": 3.0}), Score(0.5, {"length": 3.0})),
        (Subscore("exact", 1.0), Score(1.0, {}, (Subscore("exact", 1.0),))),
        ({"score": 0.5}, Score(0.5)),
        ({"score": 1, "info": {"length": 3, "said": "yes"}}, Score(1.0, {"length": 3.0})),
        (
            {"score": 1, "subscores": [{"name": "style", "value": 0.5, "weight": 2, "note": "plain"}]},
            Score(1.0, {}, (Subscore("style", 0.5, 2.0, "plain"),)),
        ),
        ({"score": 1, "subscores": {"style": 1}}, Score(1.0, {}, (Subscore("style", 1.0),))),
        (
            {"score": 1, "subscores": [{"name": "a", "value": 1, "children": [{"name": "b", "value": 0}]}]},
            Score(1.0, {}, (Subscore("a", 1.0, parts=(Subscore("b", 0.0),)),)),
        ),
    ],
)
def test_a_reward_is_a_number_a_score_or_an_object_with_one(
    env: Environment, reward: Any, score: Score
) -> None:
    @env.template()
    async def ask() -> Yields:
        yield "?"
        yield reward

    ask()

    assert play_one(env).score == score


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (True, "yielded True last; a reward is a number"),
        (float("nan"), "finite number"),
        (float("inf"), "finite number"),
        ("1.0", "yielded '1.0' last"),
        (None, "yielded None last"),
        ({"reward": 1.0}, "returned dict"),
        ({"score": True}, "a score is a number"),
        ({"score": "good"}, "a score is a number"),
        ({"score": float("nan")}, "finite number"),
        ({"score": 1.0, "info": 3}, "info that is 3"),
        ({"score": 1.0, "subscores": 3}, "subscores that are 3"),
        ({"score": 1.0, "subscores": [{"value": 1}]}, "needs a name and a value"),
        (Subscore("exact", float("nan")), "finite number"),
        (Score(float("nan")), "finite number"),
    ],
)
def test_what_is_no_reward_is_a_grader_error_and_never_a_zero(
    env: Environment, reward: Any, said: str
) -> None:
    @env.template()
    async def ask() -> Yields:
        yield "?"
        yield reward

    ask()
    rollout = play_one(env)

    assert (rollout.outcome, rollout.score) == ("grader_error", None)
    assert rollout.failure is not None
    assert said in rollout.failure.message


def test_a_template_that_ends_without_a_reward_is_a_grader_error(env: Environment) -> None:
    @env.template()
    async def forgetful() -> Yields:
        yield "?"

    forgetful()
    rollout = play_one(env)

    assert rollout.outcome == "grader_error"
    assert rollout.failure is not None
    assert rollout.failure.message == "template 'forgetful' ended without yielding a reward"


def test_a_template_that_raises_while_asking_or_scoring_is_blamed_for_just_that(env: Environment) -> None:
    @env.template()
    async def fails(when: str) -> Yields:
        if when == "asking":
            raise ValueError("no words")
        yield "?"
        if when == "scoring":
            raise ValueError("no idea")
        yield 1.0

    outcomes = {
        rollout.task.args["when"]: rollout.outcome
        for rollout in play(env, tasks=[fails("asking"), fails("scoring"), fails("never")])
    }

    assert outcomes == {"asking": "environment_error", "scoring": "grader_error", "never": "scored"}


def test_info_and_content_of_a_reward_can_be_kept_as_columns(env: Environment) -> None:
    @env.template()
    async def ask() -> Yields:
        yield "?"
        yield {"score": 1, "info": {"said": "yes"}, "content": "well done"}

    ask()
    rollout = play_one(env, columns=("grade_info", "grade_content"))

    assert rollout.columns == {"grade_info": {"said": "yes"}, "grade_content": "well done"}


# Tasks


def test_calling_a_template_runs_nothing_and_gives_plain_data(env: Environment) -> None:
    ran = []

    @env.template(id="count-letters")
    async def count(word: str, letter: str = "r") -> Yields:
        ran.append(word)
        yield "?"
        yield 1.0

    task = count(word="strawberry")

    assert not ran
    assert (task.env, task.template, task.args) == ("letters", "count-letters", {"word": "strawberry"})
    assert task.slug == task.id == "count-letters-d235f5b7"
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(task)), Task).hash == task.hash


def test_the_same_inputs_are_the_same_task_and_others_are_another(env: Environment) -> None:
    @env.template()
    async def count(word: str, letter: str = "r") -> Yields:
        yield "?"
        yield 1.0

    one, same, other = count("a", "b"), count(letter="b", word="a"), count("a", "c")

    assert one.slug == same.slug != other.slug
    assert one.hash == same.hash != other.hash
    assert [task.slug for task in env.tasks()] == [one.slug, other.slug]


def test_a_task_may_be_given_a_slug_of_its_own(env: Environment) -> None:
    @env.template()
    async def count(slug: str) -> Yields:
        yield slug
        yield 1.0

    task = count(slug="an input of that name").with_slug("easy")

    (rollout,) = play(env, tasks=[task])
    assert rollout.key == ("easy", 0)
    assert asked(rollout) == [("user", "an input of that name")]


def test_a_template_without_inputs_is_its_own_slug(env: Environment) -> None:
    @env.template()
    async def riddle() -> Yields:
        yield "?"
        yield 1.0

    assert riddle().slug == "riddle"


def test_rows_of_results_say_what_was_minted_and_rows_of_others_stay_as_they_were(env: Environment) -> None:
    @env.template()
    async def count(word: str) -> Yields:
        yield "?"
        yield 1.0

    count("pear")

    row = build_row(play_one(env))
    assert row["info"] == {"env": "letters", "template": "count", "args": {"word": "pear"}}
    assert row["example_id"] == count("pear").slug
    assert Task(id=1, info={"a": 1}).origin == {"a": 1}
    assert Task(id=1).hash == Task(id=2).hash == "a500966a0941cafd"


@dataclass
class Point:
    x: int
    y: int


def test_inputs_are_converted_to_their_types_and_kept_as_plain_data(env: Environment) -> None:
    seen: list[Any] = []

    @env.template()
    async def walk(start: Point, steps: int, mood: Literal["slow", "fast"] = "slow") -> Yields:
        seen.extend([start, steps, mood])
        yield "?"
        yield 1.0

    task = walk(start=Point(1, 2), steps="3")  # type: ignore[arg-type]
    play(env)

    assert task.args == {"start": {"x": 1, "y": 2}, "steps": 3}
    assert seen == [Point(1, 2), 3, "slow"]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"wrod": "pear"}, "has no argument `wrod`; did you mean `word`?"),
        ({}, "also needs `word` (string)"),
        ({"word": "pear", "times": "many"}, "`times` of `count` is wrong"),
        ({"word": object()}, "Cannot mint a task of 'letters'"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_when_the_task_is_minted(
    env: Environment, inputs: dict[str, Any], said: str
) -> None:
    @env.template()
    async def count(word: str, times: int = 1) -> Yields:
        yield "?"
        yield 1.0

    with pytest.raises(ConfigError) as refused:
        count(**inputs)

    assert said in str(refused.value)


def test_a_task_from_elsewhere_is_checked_before_it_is_started(env: Environment) -> None:
    @env.template()
    async def count(times: int) -> Yields:
        yield "?"
        yield float(times)

    written = [
        Task(id="a", env="letters", template="count", args={"times": "2"}),
        Task(id="b", env="letters", template="count", args={"times": "many"}),
        Task(id="c", env="letters", template="cuont"),
    ]
    first, second, third = play(env, tasks=written)

    assert first.score == Score(2.0)
    assert second.outcome == third.outcome == "environment_error"
    assert third.failure is not None
    assert third.failure.message == "'letters' has no template 'cuont'; did you mean 'count'?"
    with pytest.raises(ConfigError, match="Task 'b': `times` of `count` is wrong"):
        env.check_task(written[1])


def test_what_cannot_be_a_template_is_refused_when_it_is_written(env: Environment) -> None:
    async def no_generator() -> None: ...

    async def twice() -> Yields:
        yield "?"

    async def anything(*words: str) -> Yields:
        yield "?"

    env.template()(twice)
    with pytest.raises(ConfigError, match="is not an async generator"):
        env.template()(no_generator)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="Two templates of 'letters' are called 'twice'"):
        env.template()(twice)
    with pytest.raises(ConfigError, match="name every argument"):
        env.template()(anything)
    with pytest.raises(ConfigError, match="parentheses"):
        env.template(twice)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="cannot be a template's id"):
        env.template(id="two words")(twice)


# Typed answers


async def parsed(kind: Any, answer: str) -> Any:
    """What a template is sent when somebody answers so."""
    seen: list[Any] = []
    env = Environment("typed")

    @env.template(returns=kind)
    async def ask() -> AsyncGenerator[Any, Any]:
        seen.append((yield "?"))
        yield 1.0

    exchange = ask.start({})
    await exchange.begin()
    grade = await exchange.reply(answer)
    await exchange.close()
    return seen[0] if seen else grade


@pytest.mark.parametrize(
    ("kind", "answer", "sent"),
    [
        (int, "3", 3),
        (int, " 3\n", 3),
        (float, "0.5", 0.5),
        (list[str], '["a", "b"]', ["a", "b"]),
        (list[str], '```json\n["a", "b"]\n```', ["a", "b"]),
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Literal["yes", "no"], "yes", "yes"),
        (Literal["yes", "no"], '"yes"', "yes"),
        (bool, "true", True),
        (str, '"3"', '"3"'),
    ],
)
def test_an_answer_is_read_as_the_type_the_template_asks_for(kind: Any, answer: str, sent: Any) -> None:
    assert asyncio.run(parsed(kind, answer)) == sent


def test_an_answer_that_cannot_be_read_is_a_wrong_answer_that_says_why(env: Environment) -> None:
    @env.template(returns=int)
    async def ask() -> AsyncGenerator[Any, int]:
        answer = yield "?"
        yield float(answer == 3)

    ask()
    unreadable, readable = play_one(env, ["about three"]), play_one(env, ["3"])

    assert unreadable.outcome == "scored"
    assert unreadable.score is not None
    assert unreadable.score.reward == 0.0
    assert unreadable.score.metrics == {"unreadable_answer": 1.0}
    assert "cannot be read" in unreadable.score.subscores[0].note
    assert readable.score == Score(1.0, {"unreadable_answer": 0.0})


def test_the_type_of_the_answer_may_stand_in_the_annotation(env: Environment) -> None:
    @env.template()
    async def ask() -> AsyncGenerator[str | float, list[int]]:
        answer = yield "?"
        yield float(sum(answer))

    ask()

    assert ask.answer_schema == {"type": "array", "items": {"type": "integer"}}
    rollout = play_one(env, ["[1, 2]"])
    assert rollout.score is not None
    assert rollout.score.reward == 3.0


# More yields


def test_yields_in_between_are_further_turns(env: Environment) -> None:
    @env.template()
    async def twice() -> Yields:
        first = yield "a word?"
        second = yield [{"role": "user", "content": f"{first}; another?"}]
        yield {"score": float((first, second) == ("pear", "plum"))}

    twice()
    rollout = play_one(env, ["pear", "plum"])

    assert rollout.score == Score(1.0, {"num_turns": 2.0})
    said = [message["content"] for message in rollout.trace.completion]
    assert said == ["pear", "pear; another?", "plum"]


def test_a_game_may_take_as_many_turns_as_it_likes(env: Environment) -> None:
    @env.template()
    async def guess(secret: int) -> Yields:
        answer = yield "guess"
        for tries in range(5):
            if int(answer) == secret:
                yield 1 - tries / 5
                return
            answer = yield "higher" if int(answer) < secret else "lower"
        yield 0.0

    guess(7)

    assert play_one(env, ["3", "9", "7"]).score == Score(1 - 2 / 5, {"num_turns": 3.0})
    assert play_one(env, ["3"]).score == Score(0.0, {"num_turns": 6.0})


def test_only_what_follows_the_last_answer_is_scoring(env: Environment) -> None:
    @env.template()
    async def fails(after: str) -> Yields:
        yield "first?"
        if after == "first":
            raise ValueError("broken")
        yield "second?"
        if after == "second":
            raise ValueError("broken")
        yield 1.0

    first, second = play(env, tasks=[fails("first").with_slug("1"), fails("second").with_slug("2")])

    assert (first.outcome, second.outcome) == ("environment_error", "grader_error")


def test_a_template_that_never_stops_asking_is_stopped(
    env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.env.template_session.MOST_TURNS", 5)

    @env.template()
    async def endless() -> Yields:
        for _ in range(1_000_000):
            yield "and?"

    endless()
    rollout = play_one(env)

    assert rollout.outcome == "environment_error"
    assert len(rollout.trace.calls) == 5


def test_a_conversation_that_no_longer_fits_is_scored_on_what_was_said(env: Environment) -> None:
    heard = []

    @env.template()
    async def twice() -> Yields:
        heard.append((yield "first?"))
        heard.append((yield "second?"))
        heard.append((yield "third?"))
        yield 0.5

    twice()
    rollout = play_one(env, ["pear", ContextTooLongError("full")])

    assert (rollout.outcome, rollout.score) == ("truncated", Score(0.5, {"num_turns": 2.0}))
    assert heard == ["pear", "", ""]


async def straight() -> Yields:
    yield "?"
    yield 1.0


async def branches(right: bool) -> Yields:
    answer = yield "?"
    if answer == "a":
        yield 1.0
    elif right:
        yield 0.5
        return
    else:
        yield 0.0


async def leaves_early(right: bool) -> Yields:
    answer = yield "?"
    if answer:
        yield 1.0
        return
    with pytest.raises(ValueError, match="invalid"):
        int(answer)
    try:
        yield 0.0
    finally:
        assert [number + 1 for number in range(3)]


async def sometimes_more(more: bool) -> Yields:
    yield "?"
    if more:
        yield "?"
    yield 1.0


async def loops() -> Yields:
    for _ in range(3):
        yield "?"
    yield 1.0


async def matches(kind: str) -> Yields:
    answer = yield "?"
    match answer:
        case "a":
            yield 1.0
        case _:
            yield 0.0


async def hides_another() -> Yields:
    def inner() -> Any:
        yield 1

    yield str(list(inner()))
    yield 1.0


@functools.wraps(straight)
async def wrapped() -> Yields:
    async for step in straight():
        yield step


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (straight, 2),
        (branches, 2),
        (leaves_early, 2),
        (sometimes_more, None),
        (loops, None),
        (matches, 2),
        (hides_another, 2),
        (wrapped, None),
        (len, None),
        (eval("lambda: 0"), None),
    ],
)
def test_the_source_tells_which_yield_is_the_last(function: Callable[..., Any], count: int | None) -> None:
    assert count_yields(function) == count


# Ends


@pytest.mark.parametrize("how", ["scored", "broken", "slow", "agent"])
def test_a_template_is_closed_however_its_rollout_ended(env: Environment, how: str) -> None:
    ended = []

    @env.template()
    async def ask() -> Yields:
        try:
            yield "?"
            if how == "broken":
                raise ValueError(how)
            if how == "slow":
                await asyncio.Event().wait()
            yield 1.0
        finally:
            await asyncio.sleep(0)
            ended.append(how)

    ask()
    script = [ModelTimeoutError("503")] if how == "agent" else ["x"]
    rollout = play_one(env, script, scoring_seconds=0.05 if how == "slow" else None)

    assert ended == [how]
    expected = {"scored": "scored", "broken": "grader_error", "slow": "timeout", "agent": "model_error"}
    assert rollout.outcome == expected[how]


def test_a_template_that_is_late_with_its_prompt_is_a_timeout_and_closed(env: Environment) -> None:
    ended = []

    @env.template()
    async def ask() -> Yields:
        try:
            await asyncio.Event().wait()
            yield "?"
        finally:
            ended.append(True)

    ask()

    assert play_one(env, start_seconds=0.05).outcome == "timeout"
    assert ended == [True]


def test_what_all_rollouts_share_is_made_once_and_taken_away_once(env: Environment) -> None:
    said: list[str] = []

    @env.initialize
    async def begin() -> None:
        await asyncio.sleep(0)
        said.append("begin")

    @env.initialize
    def go_on() -> None:
        said.append("go on")

    @env.shutdown
    def end() -> None:
        said.append("end")

    @env.template()
    async def ask(number: int) -> Yields:
        said.append("ask")
        yield "?"
        yield 1.0

    for number in range(3):
        ask(number)
    once = ["begin", "go on", "ask", "ask", "ask", "end"]

    play(env)
    assert said == once
    play(env)
    assert said == once * 2


def test_an_initializer_that_failed_is_tried_again_by_the_next_rollout(env: Environment) -> None:
    tries: list[int] = []

    @env.initialize
    def begin() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not yet")

    @env.template()
    async def ask(number: int) -> Yields:
        yield "?"
        yield 1.0

    for number in range(3):
        ask(number)
    outcomes = [rollout.outcome for rollout in play(env, at_once=1)]

    assert sorted(outcomes) == ["environment_error", "scored", "scored"]
    assert len(tries) == 2


def test_nothing_is_shut_down_that_was_never_begun(env: Environment) -> None:
    said: list[str] = []
    env.initialize(lambda: said.append("begin"))
    env.shutdown(lambda: said.append("end"))

    asyncio.run(env.close())

    assert said == []


# Tools


def with_tools(env: Environment) -> None:
    @env.tool
    def length(word: str) -> int:
        """How long a word is."""
        if not word:
            raise ValueError("no word")
        return len(word)

    @env.tool()
    async def upper(word: str) -> str:
        return word.upper()

    @env.tool
    def leave() -> None:
        raise SystemExit(3)

    @env.tool
    def give_up() -> None:
        raise EnvError("the dictionary is lost")

    @env.template()
    async def ask() -> Yields:
        answer = yield "how long is pear?"
        yield exact(answer, "4")

    ask()


def calls(*wanted: tuple[str, Any]) -> Step:
    return Step(tool_calls=[{"name": name, "arguments": arguments} for name, arguments in wanted])


def test_functions_are_tools_and_what_goes_wrong_is_told_to_the_model(env: Environment) -> None:
    with_tools(env)
    wrong = [("length", {"wrod": "x"}), ("lenght", {}), ("length", {"word": ""}), ("leave", {})]
    model = Scripted([calls(("length", {"word": "pear"}), ("upper", {"word": "a"})), calls(*wrong), "4"])

    rollout = play_one(env, model)

    told = [message["content"] for message in rollout.trace.completion if message["role"] == "tool"]
    assert told[:2] == ["4", "A"]
    assert told[2] == "`length` has no argument `wrod`; did you mean `word`?"
    assert told[3].startswith("There is no tool 'lenght'; did you mean 'length'")
    assert told[4:] == ["ValueError: no word", "`leave` tried to exit with 3."]
    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert rollout.score.metrics == {"total_tool_calls": 6.0, "tool_errors": 4.0}
    assert [tool.name for tool in model.requests[0].tools] == ["length", "upper", "leave", "give_up"]


def test_a_tool_may_end_the_rollout_by_a_failure_we_name(env: Environment) -> None:
    with_tools(env)

    rollout = play_one(env, [calls(("give_up", {}))])

    assert rollout.outcome == "environment_error"
    assert rollout.failure is not None
    assert rollout.failure.message == "the dictionary is lost"


def test_two_tools_of_one_name_are_refused(env: Environment) -> None:
    with_tools(env)

    def length(word: str) -> int:
        return 0

    with pytest.raises(ConfigError, match="Two tools of 'letters' are called 'length'"):
        env.tool(length)


# Judges


def judged(judge: Any = None) -> Environment:
    env = Environment("judged", judge=judge)

    @env.template()
    async def ask() -> Yields:
        answer = yield "the capital of France?"
        verdict = await env.judge(answer, question="the capital of France?", expected="Paris", weight=3)
        yield combine(verdict, part("form", exact(answer, "Paris")))

    ask()
    return env


def test_a_judge_is_asked_through_the_seat_and_its_words_are_kept() -> None:
    judge = Scripted(["It says so.\nyes"], name="judge")

    rollout = play_one(judged(judge), ["The city of Paris"])

    assert [(call.role, call.model) for call in rollout.trace.calls] == [
        ("agent", "scripted"),
        ("judge", "judge"),
    ]
    assert rollout.score is not None
    assert rollout.score.reward == 0.75
    assert rollout.score.metrics == {"judge": 1.0, "form": 0.0}
    first, second = rollout.score.subscores
    assert (first.name, first.weight, first.note) == ("judge", 0.75, "It says so.\nyes")
    assert second.parts[0].note == "expected 'Paris', got 'The city of Paris'"
    assert build_row(rollout)["subscores"] == (first, second)


@pytest.mark.parametrize("said", [ModelTimeoutError("503"), "perhaps"])
def test_a_judge_that_cannot_be_asked_or_read_is_a_grader_error(said: Any) -> None:
    rollout = play_one(judged(Scripted([said])), ["Paris"])

    assert (rollout.outcome, rollout.score) == ("grader_error", None)


def test_a_judge_in_the_middle_of_a_game_is_not_the_evaluated_models_fault() -> None:
    env = Environment("judged", judge=Scripted([ContextTooLongError("too long")]))

    @env.template()
    async def ask() -> Yields:
        answer = yield "?"
        for _ in range(3):
            await env.judge(answer)
            answer = yield "again?"
        yield 1.0

    ask()

    assert play_one(env).outcome == "grader_error"


def test_a_judge_outside_of_a_rollout_says_that_it_needs_one() -> None:
    with pytest.raises(Exception, match="outside a template"):
        asyncio.run(judged().judge("x"))
