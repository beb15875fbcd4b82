"""The tool loop at work: real tools, a scripted model, and what stands in the trace afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from proctor import Environment, InfraError, Rollout, Scripted, Step, ToolLoop, evaluate, parallel_tool
from proctor.contracts import Agent
from proctor.errors import ConfigError, ContextTooLongError
from proctor.models.scripted import AnyStep
from tests.waiting import SECONDS


def calls(*names: str, **settings: Any) -> Step:
    return Step(tool_calls=[{"id": f"c-{name}", "name": name} for name in names], **settings)


def exam(*tools: Any) -> Environment:
    """One task, passed by saying 'done'."""
    env = Environment("exam")
    for tool in tools:
        env.tool(tool)

    @env.template()
    async def work():  # type: ignore[no-untyped-def]
        answer = yield "Get it done."
        yield float("done" in answer)

    work()
    return env


def play(env: Environment, script: Sequence[AnyStep], agent: Agent | str | None = None) -> Rollout:
    (rollout,) = asyncio.run(evaluate(env, Scripted(script), agent=agent))
    return rollout


def results(rollout: Rollout) -> dict[str, Any]:
    """What tools said, by the call they answer, in the order of the conversation."""
    said = rollout.trace.completion
    return {message["tool_call_id"]: message["content"] for message in said if message["role"] == "tool"}


def test_a_model_that_calls_nothing_has_answered() -> None:
    rollout = play(exam(), ["done"])

    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert (rollout.outcome, rollout.trace.stop_condition) == ("scored", None)
    assert len(rollout.trace.calls) == 1


def test_the_calls_of_a_turn_are_made_in_the_order_in_which_the_model_wrote_them() -> None:
    shelf: list[str] = []

    async def put() -> str:
        await asyncio.sleep(0.02)
        shelf.append("a book")
        return "put"

    async def look() -> str:
        return ", ".join(shelf) or "nothing"

    rollout = play(exam(put, look), [calls("look", "put", "look"), "done"])

    assert [each["content"] for each in rollout.trace.completion if each["role"] == "tool"] == [
        "nothing",
        "put",
        "a book",
    ]


def test_a_call_that_ends_the_rollout_leaves_those_behind_it_unmade() -> None:
    made: list[str] = []

    async def lose() -> str:
        raise InfraError("the shop is gone")

    async def buy() -> str:
        made.append("bought")
        return "bought"

    assert play(exam(lose, buy), [calls("lose", "buy"), "done"]).outcome == "environment_error"
    assert made == []


def test_calls_of_tools_that_say_so_run_at_once_and_are_answered_in_the_order_they_were_asked() -> None:
    rung = asyncio.Event()

    @parallel_tool
    async def hear() -> str:
        await asyncio.wait_for(rung.wait(), SECONDS)
        return "heard it"

    @parallel_tool
    async def ring() -> str:
        rung.set()
        return "rang"

    rollout = play(exam(hear, ring), [calls("hear", "ring"), "done"])

    assert list(results(rollout).items()) == [("c-hear", "heard it"), ("c-ring", "rang")]
    assert [message["role"] for message in rollout.trace.calls[1].messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
    ]


def test_a_failing_call_and_an_unknown_tool_are_told_to_the_model() -> None:
    def break_down() -> str:
        raise OSError("no paper")

    rollout = play(exam(break_down), [calls("break_down", "break_dance"), "done"])

    told = results(rollout)
    assert told["c-break_down"] == "OSError: no paper"
    assert "did you mean 'break_down'?" in told["c-break_dance"]
    assert rollout.outcome == "scored"


def test_a_call_where_there_are_no_tools_is_told_too() -> None:
    rollout = play(exam(), [calls("search"), "done"])

    assert results(rollout) == {"c-search": "There is no tool 'search'; this task has no tools."}
    assert rollout.outcome == "scored"


def test_out_of_steps_the_rollout_is_scored_on_what_was_said_and_called_truncated() -> None:
    rang: list[int] = []

    def ring() -> str:
        rang.append(1)
        return "rang"

    script = [calls("ring", text="almost done"), calls("ring")]
    rollout = play(exam(ring), script, ToolLoop(max_steps=2))

    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert (rollout.outcome, rollout.trace.stop_condition) == ("truncated", "max_steps")
    assert len(rollout.trace.calls) == 2
    assert len(rang) == 1, "nobody would have read what the last call came to"
    assert rollout.trace.completion[-1]["content"] == "This call was not made: no steps are left."


def test_a_call_cut_off_by_length_is_not_made() -> None:
    erased: list[str] = []

    def erase(what: str = "everything") -> str:
        erased.append(what)
        return f"erased {what}"

    cut = Step(
        tool_calls=[
            {"id": "whole", "name": "erase", "arguments": {"what": "a typo"}},
            {"id": "half", "name": "erase", "arguments": '{"what": "a t'},
            {"id": "begun", "name": "erase", "arguments": ""},
        ],
        finish_reason="length",
    )
    rollout = play(exam(erase), [cut, "done"])

    assert erased == ["a typo"]
    never = "This call was cut off before it was complete, and was not made."
    assert results(rollout) == {"whole": "erased a typo", "half": never, "begun": never}
    assert rollout.outcome == "truncated"


def test_an_answer_cut_off_by_length_is_scored_as_far_as_it_goes() -> None:
    rollout = play(exam(), [Step(text="done, bec", finish_reason="length")])

    assert rollout.score is not None
    assert (rollout.outcome, rollout.score.reward) == ("truncated", 1.0)


def test_a_conversation_that_no_longer_fits_ends_with_what_was_said() -> None:
    def read() -> str:
        return "a very long book"

    rollout = play(exam(read), [calls("read", text="done soon"), ContextTooLongError("full")])

    assert rollout.score is not None
    assert (rollout.outcome, rollout.trace.stop_condition) == ("truncated", "prompt_too_long")
    assert rollout.score.reward == 1.0


def test_the_system_prompt_comes_first_and_once_however_many_turns_a_task_has() -> None:
    env = Environment("talk")

    @env.template()
    async def talk():  # type: ignore[no-untyped-def]
        first = yield "Hello."
        second = yield "And now?"
        yield float(first == "hi" and second == "bye")

    talk()
    rollout = play(env, ["hi", "bye"], ToolLoop(system_prompt="Be brief."))

    assert rollout.score is not None
    assert rollout.score.reward == 1.0
    assert [(each["role"], each["content"]) for each in rollout.trace.calls[1].messages] == [
        ("system", "Be brief."),
        ("user", "Hello."),
        ("assistant", "hi"),
        ("user", "And now?"),
    ]


def test_a_model_that_cannot_be_asked_is_not_the_agents_fault() -> None:
    rollout = play(exam(), [Step(error="timeout")])

    assert rollout.outcome == "model_error"


def test_a_loop_without_steps_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_steps of tool_loop is 0; it must be at least 1"):
        ToolLoop(max_steps=0)
