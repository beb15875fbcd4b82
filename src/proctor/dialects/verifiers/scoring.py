"""The rubrics of a verifiers environment, and a note of what their functions raise, since the framework turns
that into 0. Functions keep their signatures, which the framework otherwise computes at every call.

Runs in the environment's own Python; knows nothing of Proctor or of how rollouts are played.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
from typing import Any

scored_state: contextvars.ContextVar[int | None] = contextvars.ContextVar("scored_state", default=None)
scoring_errors: contextvars.ContextVar[list[tuple[int | None, Exception, str]]] = contextvars.ContextVar(
    "scoring_errors"
)


def list_rubrics(env: Any) -> list[Any]:
    """The rubrics of an environment, with those of groups of rubrics and of environments."""
    found: list[Any] = []
    waiting = [env.rubric, *(each.rubric for each in getattr(env, "envs", ()))]
    while waiting:
        rubric = waiting.pop()
        if rubric in found:
            continue
        found.append(rubric)
        waiting.extend(getattr(rubric, "rubrics", ()))
    return found


def is_grouped(env: Any) -> bool:
    if hasattr(env, "requires_group_rollouts"):
        return bool(env.requires_group_rollouts)
    return any(
        bool(rubric._get_group_reward_funcs())
        for rubric in list_rubrics(env)
        if hasattr(rubric, "_get_group_reward_funcs")
    )


def record_errors(rubric: Any) -> None:
    """Have a rubric's functions leave a note of why they gave no number, which the framework turns into 0."""
    rubric.funcs = [recording(function) for function in rubric.funcs]
    inner = getattr(rubric, "_call_individual_reward_func", None)
    if inner is None:
        return

    async def call(func: Any, state: Any, **kwargs: Any) -> Any:
        token = scored_state.set(id(state))
        try:
            return await inner(func=func, state=state, **kwargs)
        finally:
            scored_state.reset(token)

    rubric._call_individual_reward_func = call


def recording(function: Any) -> Any:
    def note(error: Exception) -> None:
        errors = scoring_errors.get(None)
        if errors is not None:
            errors.append((scored_state.get(), error, getattr(function, "__name__", "?")))

    async def wait_for(value: Any) -> Any:
        try:
            return check(await value)
        except Exception as error:
            note(error)
            raise

    def check(value: Any) -> Any:
        """A group's function returns a list; anything else must be a number, or the framework counts 0."""
        if not isinstance(value, (list, tuple)):
            float(value)
        return value

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            value = function(*args, **kwargs)
            return wait_for(value) if inspect.isawaitable(value) else check(value)
        except Exception as error:
            note(error)
            raise

    return with_signature_of(function, call)


def keep_signatures(env: Any) -> None:
    """Of the stop conditions and cleanup methods of an environment and of its members."""
    for each in (env, *getattr(env, "envs", ())):
        for name in ("_stop_conditions", "_cleanup_handlers"):
            if hasattr(each, name):
                setattr(each, name, [keep_signature(method) for method in getattr(each, name)])


def keep_signature(method: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return with_signature_of(method, call)


def with_signature_of(function: Any, call: Any) -> Any:
    functools.update_wrapper(call, function)
    call.__signature__ = inspect.signature(function)
    return call
