"""An environment of five tasks, one of which fails in the way it is told to. Task 3 is the bad one.

proctor eval run tests/faulty.py -m scripted -a '{"fault": "reward raises"}'
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from proctor import MultiTurnEnv, Rubric, SingleTurnEnv, State, ToolEnv, cleanup, teardown
from proctor.env.echo import repeats
from proctor.trace import Message

BAD = 3
TASKS = 5


def is_bad(state: State) -> bool:
    return bool(state["example_id"] == BAD)


def rows() -> list[dict[str, Any]]:
    return [{"question": f"say {number}", "answer": f"say {number}"} for number in range(TASKS)]


# What goes wrong


def value_error() -> None:
    raise ValueError("the dog ate it")


def stray_cancellation() -> None:
    raise asyncio.CancelledError


def system_exit() -> None:
    sys.exit("enough of this")


def keyboard_interrupt() -> None:
    raise KeyboardInterrupt


def stop_iteration() -> None:
    next(iter(()))


def forever() -> None:
    time.sleep(3600)


WRONGS: dict[str, Callable[[], None]] = {
    "raises": value_error,
    "raises CancelledError": stray_cancellation,
    "exits": system_exit,
    "raises KeyboardInterrupt": keyboard_interrupt,
    "raises StopIteration": stop_iteration,
    "blocks forever": forever,
}


# Where it goes wrong


def in_setup(wrong: Callable[[], None]) -> MultiTurnEnv:
    class BadSetup(SingleTurnEnv):
        async def setup_state(self, state: State) -> None:
            if is_bad(state):
                wrong()

    return BadSetup(rows(), rubric=Rubric(repeats))


def in_response(wrong: Callable[[], None]) -> MultiTurnEnv:
    class BadResponse(MultiTurnEnv):
        async def env_response(self, messages: list[Message], state: State) -> str:
            if is_bad(state):
                wrong()
            return str(state["answer"])

    return BadResponse(rows(), rubric=Rubric(repeats), max_turns=2)


def in_blocking_response(wrong: Callable[[], None]) -> MultiTurnEnv:
    class BadResponse(MultiTurnEnv):
        def env_response(self, messages: list[Message], state: State) -> str:  # type: ignore[override]
            if is_bad(state):
                wrong()
            return str(state["answer"])

    return BadResponse(rows(), rubric=Rubric(repeats), max_turns=2)


def in_cleanup(wrong: Callable[[], None]) -> MultiTurnEnv:
    class BadCleanup(SingleTurnEnv):
        @cleanup
        async def sweep(self, state: State) -> None:
            if is_bad(state):
                wrong()

    return BadCleanup(rows(), rubric=Rubric(repeats))


def in_response_and_cleanup(wrong: Callable[[], None]) -> MultiTurnEnv:
    class BadTwice(MultiTurnEnv):
        async def env_response(self, messages: list[Message], state: State) -> str:
            if is_bad(state):
                wrong()
            return str(state["answer"])

        @cleanup
        async def sweep(self, state: State) -> None:
            if is_bad(state):
                raise RuntimeError("nothing was left to sweep")

    return BadTwice(rows(), rubric=Rubric(repeats), max_turns=2)


def in_setup_and_cleanup(wrong: Callable[[], None]) -> MultiTurnEnv:
    class BadTwice(SingleTurnEnv):
        async def setup_state(self, state: State) -> None:
            if is_bad(state):
                wrong()
            state["sandbox"] = "a broom"

        @cleanup
        async def sweep(self, state: State) -> None:
            del state["sandbox"]

    return BadTwice(rows(), rubric=Rubric(repeats))


def in_reward_and_cleanup(wrong: Callable[[], None]) -> MultiTurnEnv:
    def judged(state: State) -> float:
        if is_bad(state):
            wrong()
        return 1.0

    class BadTwice(SingleTurnEnv):
        @cleanup
        async def sweep(self, state: State) -> None:
            if is_bad(state):
                raise RuntimeError("nothing was left to sweep")

    return BadTwice(rows(), rubric=Rubric(judged))


def in_teardown(wrong: Callable[[], None]) -> MultiTurnEnv:
    class BadTeardown(SingleTurnEnv):
        @teardown
        async def demolish(self) -> None:
            wrong()

    return BadTeardown(rows(), rubric=Rubric(repeats))


def in_reward(wrong: Callable[[], None]) -> MultiTurnEnv:
    def judged(state: State) -> float:
        if is_bad(state):
            wrong()
        return 1.0

    return SingleTurnEnv(rows(), rubric=Rubric(judged))


def in_async_reward(wrong: Callable[[], None]) -> MultiTurnEnv:
    async def judged(state: State) -> float:
        if is_bad(state):
            wrong()
        return 1.0

    return SingleTurnEnv(rows(), rubric=Rubric(judged))


def in_group_reward(wrong: Callable[[], None]) -> MultiTurnEnv:
    def compared(states: list[State]) -> list[float]:
        if is_bad(states[0]):
            wrong()
        return [1.0] * len(states)

    return SingleTurnEnv(rows(), rubric=Rubric(compared))


def in_tool(wrong: Callable[[], None]) -> MultiTurnEnv:
    def look_up(word: str) -> str:
        """Look a word up."""
        if word == str(BAD):
            wrong()
        return f"{word} is a number"

    return ToolEnv(rows(), tools=[look_up], rubric=Rubric(repeats))


def in_async_tool(wrong: Callable[[], None]) -> MultiTurnEnv:
    async def look_up(word: str) -> str:
        """Look a word up."""
        if word == str(BAD):
            wrong()
        return f"{word} is a number"

    return ToolEnv(rows(), tools=[look_up], rubric=Rubric(repeats))


def in_dataset(wrong: Callable[[], None]) -> MultiTurnEnv:
    def broken_off() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(rows()):
            if number == BAD:
                wrong()
            yield row

    return SingleTurnEnv(broken_off, rubric=Rubric(repeats))


PLACES: dict[str, Callable[[Callable[[], None]], MultiTurnEnv]] = {
    "setup": in_setup,
    "response": in_response,
    "blocking response": in_blocking_response,
    "cleanup": in_cleanup,
    "setup and cleanup": in_setup_and_cleanup,
    "response and cleanup": in_response_and_cleanup,
    "reward and cleanup": in_reward_and_cleanup,
    "teardown": in_teardown,
    "reward": in_reward,
    "async reward": in_async_reward,
    "group reward": in_group_reward,
    "tool": in_tool,
    "async tool": in_async_tool,
    "dataset": in_dataset,
}


def rewarding(value: Any) -> MultiTurnEnv:
    """The bad task's reward function returns something odd."""

    def judged(state: State) -> Any:
        return value if is_bad(state) else 1.0

    return SingleTurnEnv(rows(), rubric=Rubric(judged))


def load_environment(fault: str = "", reward: Any = None) -> MultiTurnEnv:
    if reward is not None:
        return rewarding(float("nan") if reward == "NaN" else reward)
    place = next(place for place in sorted(PLACES, key=len, reverse=True) if fault.startswith(f"{place} "))
    return PLACES[place](WRONGS[fault.removeprefix(f"{place} ")])
