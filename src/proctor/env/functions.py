"""Reward functions as authors write them: arguments injected by name, blocking or async.

A signature is read once, when the rubric is made. Knows nothing of weights.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from proctor.env.state import State
from proctor.errors import GraderError

RewardFunction = Callable[..., Any]

PLURALS = {
    "prompts": "prompt",
    "completions": "completion",
    "answers": "answer",
    "states": "state",
    "infos": "info",
    "tasks": "task",
    "example_ids": "example_id",
}


class InjectedFunction:
    """A reward function and the arguments it takes."""

    def __init__(self, function: RewardFunction) -> None:
        self.function = function
        self.name = name_of(function)
        self.title = f"reward function {self.name!r}"
        called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
        signature = inspect.signature(function)
        kinds = [parameter.kind for parameter in signature.parameters.values()]
        self.takes_all = inspect.Parameter.VAR_KEYWORD in kinds
        named = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        ]
        self.wants = tuple(parameter.name for parameter in named)
        self.needs = frozenset(parameter.name for parameter in named if parameter.default is parameter.empty)
        self.is_group = any(name in PLURALS for name in self.wants) or _returns_list(signature)

    def rename(self, name: str) -> None:
        """Give it another name, since another function has this one."""
        self.name = name
        self.title = f"reward function {name!r}"

    @property
    def may_add_to_state(self) -> bool:
        """Whether it is an author's and sees the whole state, where it may leave something for later ones."""
        sees_state = self.takes_all or not {"state", "states"}.isdisjoint(self.wants)
        return sees_state and not is_ours(getattr(self.function, "__module__", None))

    def missing_arguments(self, names: Collection[str]) -> list[str]:
        """The arguments it needs that are not among these names."""
        return sorted(name for name in self.needs if name not in names and self._singular(name) not in names)

    def _singular(self, name: str) -> str:
        return PLURALS.get(name, name.removesuffix("s")) if self.is_group else name

    def arguments(self, state: State, objects: Mapping[str, Any]) -> dict[str, Any]:
        """The function's arguments, from the rollout's state and the rubric's shared objects."""
        if self.takes_all:
            everything = {**objects, **state, "state": state}
            return self._check_given(everything, everything)
        try:
            return {name: state if name == "state" else state[name] for name in self.wants}
        except KeyError:
            pass  # it takes something else, or has a default
        given = {}
        for name in self.wants:
            if name == "state":
                given[name] = state
            elif name in state.keys():  # noqa: SIM118 - a restored state refuses what it lacks
                given[name] = state[name]
            elif name in objects:
                given[name] = objects[name]
        return self._check_given(
            given, {**objects, **state, "state": state} if self.needs - given.keys() else {}
        )

    def group_arguments(self, states: Sequence[State], objects: Mapping[str, Any]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for name in self.wants:
            singular = self._singular(name)
            if singular == "state":
                given[name] = list(states)
            elif name in objects:
                given[name] = objects[name]
            elif all(singular in state.keys() for state in states):  # noqa: SIM118 - as above
                given[name] = [state[singular] for state in states]
        if self.takes_all:
            everything = {plural: [state.get(name) for state in states] for plural, name in PLURALS.items()}
            given = {**objects, **everything, "states": list(states), **given}
        return self._check_given(given, {**objects, **dict.fromkeys(PLURALS)})

    def _check_given(self, given: dict[str, Any], available: Mapping[str, Any]) -> dict[str, Any]:
        missing = self.needs - given.keys()
        if missing:
            raise GraderError(
                f"reward function {self.name!r} asks for {', '.join(sorted(missing))}, "
                f"and there is only: {', '.join(sorted(available))}"
            )
        return given


def is_ours(module: str | None) -> bool:
    """Whether code is Proctor's own, by the module that defines it."""
    return module is not None and module.partition(".")[0] == __name__.partition(".")[0]


def name_of(function: RewardFunction) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name: str = getattr(function, "__name__", type(function).__name__)
    return name


def _returns_list(signature: inspect.Signature) -> bool:
    annotation = signature.return_annotation
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return text.lower().startswith("list")
