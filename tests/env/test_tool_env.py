"""What an environment author, or a model, would notice about tools being called."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from proctor.env.rubric import Rubric
from proctor.env.state import State
from proctor.env.tool_env import StatefulToolEnv, ToolEnv
from proctor.errors import ConfigError, InfraError
from proctor.models.scripted import Scripted, Step
from proctor.rollout import Rollout
from proctor.tools import ToolArgumentsError, ToolError, parallel_tool
from proctor.trace import Message
from tests.waiting import SECONDS

Play = Callable[..., list[Rollout]]

ONE_TASK = [{"question": "What is 2 + 3?", "answer": "5"}]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def find(name: str) -> str:
    return {"ada": "+44"}[name]


def ask(*calls: tuple[str, Mapping[str, Any] | str]) -> Step:
    return Step(tool_calls=[{"name": name, "arguments": arguments} for name, arguments in calls])


def heard(rollout: Rollout) -> list[str]:
    """What the model was told by tools."""
    return [message["content"] for message in rollout.trace.completion if message["role"] == "tool"]


def metrics(rollout: Rollout) -> dict[str, float]:
    assert rollout.score is not None, rollout.failure
    return rollout.score.metrics


def answered_by(function: Callable[..., Any], play: Play, **settings: Any) -> str:
    """What the model hears when it calls this function with nothing."""
    env = ToolEnv(ONE_TASK, tools=[function], **settings)
    name = next(iter(env.tools))
    [rollout] = play(env, [ask((name, {})), "done"])
    [text] = heard(rollout)
    return text


def test_a_model_calls_a_tool_and_answers_with_what_it_hears(play: Play) -> None:
    def right(completion: list[Message], answer: str) -> float:
        return float(completion[-1]["content"] == answer)

    model = Scripted([ask(("add", {"a": 2, "b": 3})), "5"])
    [rollout] = play(ToolEnv(ONE_TASK, tools=[add], rubric=Rubric(right)), model)

    assert rollout.outcome == "scored"
    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert rollout.trace.completion[1] == {"role": "tool", "tool_call_id": "call_0", "content": "5"}
    assert rollout.trace.stop_condition == "no_tools_called"
    assert [tool.name for tool in model.requests[0].tools] == ["add"]
    assert model.requests[1].messages[-1]["content"] == "5"


def test_results_come_in_the_order_of_the_calls_however_long_each_takes(play: Play) -> None:
    async def wait(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return f"waited {seconds}"

    calls = ask(("wait", {"seconds": 0.1}), ("wait", {"seconds": 0.0}), ("wait", {"seconds": 0.05}))
    [rollout] = play(ToolEnv(ONE_TASK, tools=[wait]), [calls, "done"])

    assert heard(rollout) == ["waited 0.1", "waited 0.0", "waited 0.05"]
    ids = [message.get("tool_call_id") for message in rollout.trace.completion if message["role"] == "tool"]
    assert ids == ["call_0", "call_1", "call_2"]


@pytest.mark.parametrize("kind", ["blocking", "async"])
def test_the_calls_of_one_turn_never_race(play: Play, kind: str) -> None:
    balance = [100]

    def double() -> int:
        before = balance[0]
        time.sleep(0.01)
        balance[0] = 2 * before
        return balance[0]

    async def double_async() -> int:
        before = balance[0]
        await asyncio.sleep(0.01)
        balance[0] = 2 * before
        return balance[0]

    tool = double if kind == "blocking" else double_async
    [rollout] = play(ToolEnv(ONE_TASK, tools=[tool]), [ask(*[(tool.__name__, {})] * 3), "done"])

    assert heard(rollout) == ["200", "400", "800"]


@pytest.mark.parametrize("kind", ["blocking", "async"])
def test_the_calls_of_tools_that_say_so_run_at_once(play: Play, kind: str) -> None:
    both = threading.Barrier(2, timeout=SECONDS)
    arrived: list[int] = []

    def meet() -> str:
        both.wait()
        return "met"

    async def meet_async() -> str:
        arrived.append(1)
        while len(arrived) < 2:
            await asyncio.sleep(0)
        return "met"

    tool = parallel_tool(meet if kind == "blocking" else meet_async)
    [rollout] = play(ToolEnv(ONE_TASK, tools=[tool]), [ask((tool.__name__, {}), (tool.__name__, {})), "done"])

    assert heard(rollout) == ["met", "met"]


def test_a_blocking_tool_does_not_hold_up_other_rollouts(play: Play) -> None:
    all_at_once = threading.Barrier(8, timeout=SECONDS)

    def meet() -> str:
        all_at_once.wait()
        return "met"

    tasks = [{"question": f"question {number}"} for number in range(8)]
    script = {f"question {number}": [ask(("meet", {})), "done"] for number in range(8)}
    rollouts = play(ToolEnv(tasks, tools=[meet]), script)

    assert [heard(rollout) for rollout in rollouts] == [["met"]] * 8


def test_a_plain_function_may_return_something_to_await(play: Play) -> None:
    async def later() -> str:
        return "awaited"

    def tool() -> Any:
        return later()

    assert answered_by(tool, play) == "awaited"


def test_an_object_and_a_partial_can_be_tools(play: Play) -> None:
    class Shout:
        async def __call__(self, word: str = "hey") -> str:
            return word.upper()

    def greet(greeting: str, name: str = "Ada") -> str:
        return f"{greeting} {name}"

    assert answered_by(Shout(), play) == "HEY"
    assert answered_by(partial(greet, greeting="Hello"), play) == "Hello Ada"


@dataclass
class Point:
    x: int
    y: int


class Opaque:
    def __str__(self) -> str:
        return "a black box"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (5, "5"),
        (None, "null"),
        (True, "true"),
        ([1, "zwölf"], '[1, "zwölf"]'),
        (Point(1, 2), '{"x": 1, "y": 2}'),
        ({"at": Opaque()}, '{"at": "a black box"}'),
        (Opaque(), "a black box"),
        ({"stdout": b"ok"}, '{"stdout": "ok"}'),
        (float("nan"), "NaN"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        ("half a character \ud83d", "half a character ?"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_tool_returns_becomes_text(play: Play, value: Any, text: str) -> None:
    def tool() -> Any:
        return value

    assert answered_by(tool, play) == text


def test_a_list_that_holds_itself_becomes_text(play: Play) -> None:
    def tool() -> Any:
        endless: list[Any] = []
        endless.append(endless)
        return endless

    assert answered_by(tool, play) == "[[...]]"


def test_a_tool_that_does_not_exist_is_told_with_the_nearest_name(play: Play) -> None:
    [rollout] = play(ToolEnv(ONE_TASK, tools=[add]), [ask(("ad", {})), "sorry"])

    assert heard(rollout) == ["There is no tool 'ad'; did you mean 'add'?"]
    assert rollout.outcome == "scored"
    assert metrics(rollout) == {
        "num_turns": 2.0,
        "total_tool_calls": 1.0,
        "add_calls": 0.0,
        "tool_errors": 1.0,
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"a": 2, "b":', "not valid JSON"),
        ({"a": 2}, "also needs `b` (integer)"),
        ({"a": 2, "b": "three"}, "`b` of `add` is wrong"),
        ({"a": 2, "b": 3, "c": 4}, "has no argument `c`"),
        ("", "also needs"),
    ],
)
def test_arguments_that_do_not_fit_are_told_and_the_model_may_try_again(
    play: Play, arguments: Any, words: str
) -> None:
    script = [ask(("add", arguments)), ask(("add", {"a": 2, "b": 3})), "5"]
    [rollout] = play(ToolEnv(ONE_TASK, tools=[add]), script)

    wrong, right = heard(rollout)
    assert words in wrong
    assert right == "5"
    assert metrics(rollout)["tool_errors"] == 1.0
    assert metrics(rollout)["add_calls"] == 2.0


def test_a_tool_that_raises_is_told_and_the_rollout_goes_on(play: Play) -> None:
    [rollout] = play(
        ToolEnv(ONE_TASK, tools=[find]), [ask(("find", {"name": "bob"}), ("find", {"name": "ada"})), "+44"]
    )

    assert heard(rollout) == ["KeyError: 'bob'", "+44"]
    assert rollout.outcome == "scored"
    assert metrics(rollout)["tool_errors"] == 1.0


def test_a_tool_error_is_told_in_its_own_words(play: Play) -> None:
    def tool() -> None:
        raise ToolError("The shop is closed on Sundays.")

    assert answered_by(tool, play) == "The shop is closed on Sundays."


@pytest.mark.parametrize("leave", [sys.exit, partial(sys.exit, 3)])
def test_a_tool_that_exits_ends_neither_the_rollout_nor_the_run(
    play: Play, leave: Callable[[], None]
) -> None:
    def tool() -> None:
        leave()

    assert answered_by(tool, play).startswith("`tool` tried to exit with")


def test_a_failure_may_be_told_in_the_authors_words(play: Play) -> None:
    def shrug(error: Exception) -> str:
        return f"something went wrong ({type(error).__name__})"

    env = ToolEnv(ONE_TASK, tools=[find, add], error_formatter=shrug)
    [rollout] = play(env, [ask(("find", {"name": "bob"}), ("add", {}), ("sub", {})), "done"])

    assert heard(rollout) == [
        "something went wrong (KeyError)",
        "something went wrong (ToolArgumentsError)",
        "something went wrong (ToolError)",
    ]


def test_a_stop_error_ends_the_rollout_and_its_siblings_carry_on(play: Play) -> None:
    tasks = [{"question": "whose is bob"}, {"question": "whose is ada"}]
    script = {
        "bob": [ask(("find", {"name": "bob"})), "never asked"],
        "ada": [ask(("find", {"name": "ada"})), "+44"],
    }
    bob, ada = play(ToolEnv(tasks, tools=[find], stop_errors=[LookupError]), script)

    assert bob.outcome == "environment_error"
    assert bob.failure is not None
    assert bob.failure.message == "tool 'find' failed: KeyError: 'bob'"
    assert bob.failure.chain == "EnvError -> KeyError"
    assert len(bob.trace.calls) == 1
    assert ada.outcome == "scored"


def test_arguments_that_do_not_fit_may_end_the_rollout(play: Play) -> None:
    [rollout] = play(
        ToolEnv(ONE_TASK, tools=[add], stop_errors=[ToolArgumentsError]), [ask(("add", {})), "never asked"]
    )

    assert rollout.outcome == "environment_error"


def test_a_broken_sandbox_is_never_the_models_business(play: Play) -> None:
    tries: list[int] = []

    def look() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise InfraError("the sandbox is gone")
        return "all well"

    env = ToolEnv(ONE_TASK, tools=[look])
    model = Scripted([ask(("look", {}))])
    [rollout] = play(env, model)
    assert rollout.outcome == "environment_error"
    assert rollout.failure is not None
    assert rollout.failure.chain == "InfraError"
    assert rollout.failure.transient

    tries.clear()
    [rollout] = play(
        env, [ask(("look", {})), ask(("look", {})), "done"], max_retries=1, first_wait_seconds=0.0
    )
    assert rollout.outcome == "scored"
    assert heard(rollout) == ["all well"]
    assert len(rollout.earlier) == 1


def test_a_rollout_ends_only_when_its_other_calls_have(play: Play) -> None:
    ended: list[str] = []

    def fail() -> None:
        raise InfraError("gone")

    def work() -> None:
        time.sleep(0.1)
        ended.append("work")

    class Tidy(ToolEnv):
        async def close(self) -> None:
            ended.append("close")

    play(Tidy(ONE_TASK, tools=[fail, work]), [ask(("work", {}), ("fail", {}))])

    assert ended == ["work", "close"]


def test_the_last_turn_counts_but_its_calls_are_not_run(play: Play) -> None:
    ran: list[int] = []

    def step() -> str:
        ran.append(1)
        return "again"

    [rollout] = play(ToolEnv(ONE_TASK, tools=[step], max_turns=3), [ask(("step", {}))])

    assert rollout.trace.stop_condition == "max_turns_reached"
    assert len(ran) == 2
    assert metrics(rollout)["num_turns"] == 3.0
    assert metrics(rollout)["step_calls"] == 3.0


def test_a_model_that_never_calls_anything_is_asked_once(play: Play) -> None:
    [rollout] = play(ToolEnv(ONE_TASK, tools=[add]), ["5"])

    assert rollout.trace.stop_condition == "no_tools_called"
    assert metrics(rollout)["total_tool_calls"] == 0.0


def test_a_reward_function_may_ask_how_many_calls_failed(play: Play) -> None:
    def careful(tool_errors: int) -> float:
        return 1.0 - tool_errors

    env = ToolEnv(ONE_TASK, tools=[add], rubric=Rubric(careful))
    [clumsy] = play(env, [ask(("add", {})), "done"])
    [careful_one] = play(env, ["done"])

    assert clumsy.score is not None
    assert clumsy.score.reward == 0.0
    assert careful_one.score is not None
    assert careful_one.score.reward == 1.0


def test_tools_come_and_go(play: Play) -> None:
    env = ToolEnv(ONE_TASK, tools=[add])
    env.add_tool(find)
    env.remove_tool(add)

    model = Scripted([ask(("find", {"name": "ada"})), "done"])
    [rollout] = play(env, model)
    assert [tool.name for tool in model.requests[0].tools] == ["find"]
    assert "find_calls" in metrics(rollout)
    assert "add_calls" not in metrics(rollout)

    env.remove_tool("find")
    with pytest.raises(ConfigError, match="has no tool 'find'"):
        env.remove_tool("find")


def test_a_method_can_be_taken_back() -> None:
    class Shop:
        def buy(self, item: str) -> str:
            return item

    shop = Shop()
    env = ToolEnv(ONE_TASK, tools=[shop.buy])
    env.remove_tool(shop.buy)

    assert env.tools == {}


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="Two tools are called 'add'"):
        ToolEnv(ONE_TASK, tools=[add, add])


def test_a_cancelled_rollout_takes_its_tools_with_it(play: Play) -> None:
    ended: list[str] = []

    @parallel_tool
    async def hang() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("hang")

    [rollout] = play(
        ToolEnv(ONE_TASK, tools=[hang]), [ask(("hang", {}), ("hang", {})), "done"], rollout_seconds=0.1
    )

    assert rollout.outcome == "timeout"
    assert ended == ["hang", "hang"]


# Hidden arguments


def put(session: dict[str, int], name: str, value: int) -> str:
    """Remember a value."""
    session[name] = value
    return f"{len(session)} remembered"


class Notebook(StatefulToolEnv):
    def __init__(self, **settings: Any) -> None:
        super().__init__(ONE_TASK, **settings)
        self.add_tool(put, args_to_skip=["session"])

    async def setup_state(self, state: State) -> None:
        state["session"] = {}

    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: Sequence[Message], state: State
    ) -> Any:
        return {**tool_args, "session": state["session"]}


class AsyncNotebook(Notebook):
    async def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: Sequence[Message], state: State
    ) -> None:
        tool_args["session"] = state["session"]


@pytest.mark.parametrize("kind", [Notebook, AsyncNotebook])
def test_each_rollout_fills_in_what_the_model_does_not_see(play: Play, kind: type[Notebook]) -> None:
    model = Scripted([ask(("put", {"name": "a", "value": 1})), "done"])
    rollouts = play(kind(), model, rollouts_per_task=3, at_once=1)

    assert [heard(rollout) for rollout in rollouts] == [["1 remembered"]] * 3
    assert list(model.requests[0].tools[0].parameters["properties"]) == ["name", "value"]


def test_a_model_may_not_send_what_it_does_not_see(play: Play) -> None:
    [rollout] = play(Notebook(), [ask(("put", {"name": "a", "value": 1, "session": {}})), "done"])

    [text] = heard(rollout)
    assert "has no argument `session`" in text


def test_a_forgotten_hidden_argument_is_the_environments_fault(play: Play) -> None:
    class Forgetful(Notebook):
        def update_tool_args(
            self, tool_name: str, tool_args: dict[str, Any], messages: Sequence[Message], state: State
        ) -> Any:
            return tool_args

    [rollout] = play(Forgetful(), [ask(("put", {"name": "a", "value": 1})), "done"])

    assert rollout.outcome == "environment_error"
    assert rollout.failure is not None
    assert rollout.failure.message == (
        "Forgetful.update_tool_args did not set 'session' of tool 'put', which the model cannot send"
    )


def test_a_hidden_argument_with_a_default_need_not_be_filled_in(play: Play) -> None:
    def where(folder: str = os.sep) -> str:
        return folder

    env = StatefulToolEnv(ONE_TASK)
    env.add_tool(where, args_to_skip=["folder"])
    [rollout] = play(env, [ask(("where", {})), "done"])

    assert heard(rollout) == [os.sep]


def test_a_bug_in_update_tool_args_is_not_told_to_the_model(play: Play) -> None:
    class Buggy(Notebook):
        def update_tool_args(
            self, tool_name: str, tool_args: dict[str, Any], messages: Sequence[Message], state: State
        ) -> Any:
            return {"session": state["no such key"]}

    [rollout] = play(Buggy(), [ask(("put", {"name": "a", "value": 1})), "never asked"])

    assert rollout.outcome == "environment_error"
    assert heard(rollout) == []


def test_a_tool_that_reads_a_variable_which_is_not_set_fails_the_rollout_by_name(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEARCH_KEY", raising=False)

    def search() -> str:
        return os.environ["SEARCH_KEY"]

    [rollout] = play(ToolEnv(ONE_TASK, tools=[search]), [ask(("search", {})), "done"])
    assert rollout.failure is not None
    assert (rollout.outcome, rollout.failure.kind) == ("environment_error", "MissingSecretError")
    assert "SEARCH_KEY" in rollout.failure.message


def test_a_tool_that_does_without_a_variable_is_the_models_to_deal_with(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEARCH_KEY", raising=False)

    def search() -> str:
        try:
            return os.environ["SEARCH_KEY"]
        except KeyError:
            raise ValueError("nothing found") from None

    assert "nothing found" in answered_by(search, play)
