"""Rubric: reward functions with weights → one Score.

Functions run in the order they were given, so that a later one may read what an earlier one left in the
state. Blocking ones run in a thread, a stretch of them in one hop. A function that raises, or returns
anything but a finite number, makes the rollout a grader_error: never a silent zero.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from proctor.env.functions import InjectedFunction, RewardFunction, is_ours
from proctor.env.parsers import Parser
from proctor.env.state import State
from proctor.errors import ConfigError, GraderError, RolloutError, did_you_mean
from proctor.rollout import Score, require_finite_number
from proctor.support.logs import log
from proctor.support.threads import Threads

GroupResult = Score | RolloutError

LATER_STATE = frozenset(
    {
        "final_env_response",
        "is_truncated",
        "judge_response",
        "math_timeouts",
        "metrics",
        "reward",
        "rollout",
        "stop_condition",
        "tool_errors",
        "trajectory_id",
    }
)
"""What Proctor itself may add to a state while it is played and scored."""


class Rubric:
    """Scores a rollout by weighted functions. A function of weight 0 is a metric."""

    def __init__(
        self,
        *functions: RewardFunction | Sequence[Any] | Parser | None,
        funcs: Sequence[RewardFunction] | None = None,
        weights: Sequence[float] | None = None,
        parser: Parser | None = None,
        objects: dict[str, Any] | None = None,
    ) -> None:
        """Functions one by one, or as verifiers has them: lists of functions and of weights, and a parser."""
        positional = read_positional(functions)
        given = [*positional.functions, *(funcs or ())]
        weights = (weights if weights is not None else positional.weights) or None
        parser = parser or positional.parser
        if weights is not None and len(weights) != len(given):
            raise ValueError(f"{len(given)} functions but {len(weights)} weights; give one weight for each")
        self.parser = parser or Parser()
        self.has_own_parser = parser is not None
        self.objects: dict[str, Any] = {"parser": self.parser, **(objects or {})}
        self._in_order: list[list[InjectedFunction]] | None = None
        self._counted = 0
        self.functions: list[InjectedFunction] = []
        self.weights: list[float] = []
        for function, weight in zip(given, weights or [1.0] * len(given), strict=True):
            self.add_reward_func(function, weight)

    def add_reward_func(self, function: RewardFunction, weight: float = 1.0) -> None:
        injected = InjectedFunction(function)
        injected.rename(_unique_name(injected.name, [known.name for known in self.functions]))
        self.functions.append(injected)
        self.weights.append(weight)

    def add_metric(self, function: RewardFunction, weight: float = 0.0) -> None:
        self.add_reward_func(function, weight)

    def add_object(self, name: str, value: Any) -> None:
        """Add an object that functions may take as an argument of this name."""
        self.objects[name] = value

    def add_class_object(self, name: str, obj: Any) -> None:
        """What verifiers calls `add_object`."""
        self.add_object(name, obj)

    @property
    def funcs(self) -> list[RewardFunction]:
        """The functions as they were given."""
        return [function.function for function in self.functions]

    @property
    def class_objects(self) -> dict[str, Any]:
        """The objects that functions may take, under verifiers' name."""
        return self.objects

    def use_parser(self, parser: Parser) -> None:
        """Use the environment's parser, unless this rubric was created with its own."""
        if not self.has_own_parser:
            self.parser = self.objects["parser"] = parser

    @property
    def group_functions(self) -> list[str]:
        return [function.name for function in self.functions if function.is_group]

    async def check(self) -> None:
        """Raise before the first model call if nothing could be scored."""

    def check_arguments(self, names: Collection[str], is_open: bool) -> bool:
        """Refuse a function that asks for what no rollout has: neither the state, whose `names` are known
        before it is played, nor the rubric. Where the state `is_open`, because an author's code may add to
        it, only a likely misspelling is reported. Returns whether it is open for later functions."""
        is_open = is_open or not is_ours(type(self).__module__)
        known = sorted({*names, *LATER_STATE, *self.objects, "state"})
        for function in self.functions:
            for name in function.missing_arguments(known):
                problem = (
                    f"{function.title} asks for {name!r}, which no rollout has{did_you_mean(name, known)}"
                )
                if not is_open:
                    raise ConfigError(problem)
                if difflib.get_close_matches(name, known):
                    log.warning("%s It cannot score unless your code adds it to the state.", problem)
            is_open = is_open or function.may_add_to_state
        return is_open

    async def close(self) -> None:
        """Release what scoring used."""

    async def score(self, state: State, threads: Threads) -> Score:
        values: dict[str, float] = {}
        for stretch in self._stretches():
            if stretch[0].is_async:
                value = await self._call_one(stretch[0], state, threads)
                if isinstance(value, RolloutError):
                    raise value
                values[stretch[0].name] = value
            else:
                await threads.run(lambda stretch=stretch: self._call(stretch, state, values))  # type: ignore[misc]
        return self._weigh(values)

    async def score_group(self, states: Sequence[State], threads: Threads) -> list[GroupResult]:
        """Scores of a task's rollouts; a failure in one rollout's own functions affects only that rollout."""
        values: list[dict[str, float] | RolloutError] = [{} for _ in states]
        for function in self.functions:
            live = [number for number, value in enumerate(values) if isinstance(value, dict)]
            results: Sequence[float | RolloutError]
            if function.is_group:
                results = await self._call_group(function, [states[number] for number in live], threads)
            else:
                calls = [self._call_one(function, states[number], threads) for number in live]
                results = await asyncio.gather(*calls)
            for number, result in zip(live, results, strict=True):
                _record_value(values, number, function.name, result)
        return [self._weigh(value) if isinstance(value, dict) else value for value in values]

    def _stretches(self) -> list[list[InjectedFunction]]:
        if self._in_order is None or len(self.functions) != self._counted:
            self._in_order, self._counted = list(batch_functions(self.functions)), len(self.functions)
        return self._in_order

    def _call(self, stretch: Sequence[InjectedFunction], state: State, values: dict[str, float]) -> None:
        for function in stretch:
            try:
                value = function.function(**function.arguments(state, self.objects))
            except Exception as error:
                raise _as_grader_error(error, function) from error
            if inspect.iscoroutine(value):
                value.close()
                raise GraderError(f"{function.title} returned a coroutine; declare it with async def")
            values[function.name] = require_finite_number(value, function.title)

    async def _call_one(
        self, function: InjectedFunction, state: State, threads: Threads
    ) -> float | RolloutError:
        try:
            arguments = function.arguments(state, self.objects)
            called = function.function
            value = await (called(**arguments) if function.is_async else threads.call(called, **arguments))
            return require_finite_number(value, function.title)
        except Exception as error:
            return _as_grader_error(error, function)

    async def _call_group(
        self, function: InjectedFunction, states: Sequence[State], threads: Threads
    ) -> list[float]:
        if not states:
            return []
        try:
            values = await threads.call(function.function, **function.group_arguments(states, self.objects))
        except Exception as error:
            raise _as_grader_error(error, function) from error
        if not isinstance(values, (list, tuple)) or len(values) != len(states):
            raise GraderError(
                f"group reward function {function.name!r} must return a list of {len(states)} numbers, "
                f"one for each rollout"
            )
        return [require_finite_number(value, f"group reward function {function.name!r}") for value in values]

    def _weigh(self, values: dict[str, float]) -> Score:
        reward = 0.0
        for function, weight in zip(self.functions, self.weights, strict=True):
            reward += values[function.name] * weight
        return Score(reward, values)


class RubricGroup(Rubric):
    """Several rubrics as one: their rewards are added."""

    def __init__(self, rubrics: Sequence[Rubric], **settings: Any) -> None:
        super().__init__(**settings)
        self.rubrics = list(rubrics)

    def add_reward_func(self, function: RewardFunction, weight: float = 1.0) -> None:
        if not self.rubrics:
            raise ValueError("a RubricGroup without rubrics cannot take a function")
        self.rubrics[0].add_reward_func(function, weight)

    def add_object(self, name: str, value: Any) -> None:
        for rubric in self.rubrics:
            rubric.add_object(name, value)

    def use_parser(self, parser: Parser) -> None:
        for rubric in self.rubrics:
            rubric.use_parser(parser)

    @property
    def group_functions(self) -> list[str]:
        return [name for rubric in self.rubrics for name in rubric.group_functions]

    async def check(self) -> None:
        for rubric in self.rubrics:
            await rubric.check()

    def check_arguments(self, names: Collection[str], is_open: bool) -> bool:
        for rubric in self.rubrics:
            is_open = rubric.check_arguments(names, is_open)
        return is_open

    async def close(self) -> None:
        for rubric in self.rubrics:
            await rubric.close()

    async def score(self, state: State, threads: Threads) -> Score:
        return add_scores([await rubric.score(state, threads) for rubric in self.rubrics])

    async def score_group(self, states: Sequence[State], threads: Threads) -> list[GroupResult]:
        columns = [await rubric.score_group(states, threads) for rubric in self.rubrics]
        results: list[GroupResult] = []
        for scores in zip(*columns, strict=True):
            errors = [score for score in scores if isinstance(score, RolloutError)]
            results.append(errors[0] if errors else add_scores([s for s in scores if isinstance(s, Score)]))
        return results


class PositionalWords(NamedTuple):
    functions: Sequence[RewardFunction] = ()
    weights: Sequence[float] | None = None
    parser: Parser | None = None


def read_positional(words: Sequence[Any]) -> PositionalWords:
    """Functions one by one, or a list of them, then their weights, then a parser."""
    if words and (words[0] is None or isinstance(words[0], (list, tuple))):
        functions, weights, parser = (*words, None, None)[:3]
        if len(words) > 3:
            raise TypeError(
                f"a rubric takes functions, weights and a parser by position, not {len(words)} words"
            )
        return PositionalWords(functions or (), weights, parser)
    if stray := next((word for word in words if not callable(word)), None):
        raise TypeError(f"a reward function is a function, not {type(stray).__name__}")
    return PositionalWords(words)


def add_scores(scores: Sequence[Score]) -> Score:
    """Add up scores. If two rubrics both measure `x`, both are kept, as `x` and `x_2`."""
    metrics: dict[str, float] = {}
    for score in scores:
        for name, value in score.metrics.items():
            metrics[_unique_name(name, metrics)] = value
    return Score(sum(score.reward for score in scores), metrics)


def batch_functions(functions: Sequence[InjectedFunction]) -> Iterator[list[InjectedFunction]]:
    """The functions in order: each async one alone, consecutive blocking ones together."""
    blocking: list[InjectedFunction] = []
    for function in functions:
        if not function.is_async:
            blocking.append(function)
            continue
        if blocking:
            yield blocking
            blocking = []
        yield [function]
    if blocking:
        yield blocking


def _record_value(
    values: list[dict[str, float] | RolloutError], number: int, name: str, result: float | RolloutError
) -> None:
    entry = values[number]
    if isinstance(result, RolloutError):
        values[number] = result
    elif isinstance(entry, dict):
        entry[name] = result


def _as_grader_error(error: Exception, function: InjectedFunction) -> RolloutError:
    if isinstance(error, RolloutError):
        return error
    raised = GraderError(f"reward function {function.name!r} raised {type(error).__name__}: {error}")
    raised.__cause__ = error
    return raised


def _unique_name(name: str, taken: Collection[str]) -> str:
    number = 2
    free = name
    while free in taken:
        free = f"{name}_{number}"
        number += 1
    return free
