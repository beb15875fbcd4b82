"""Turn user code into an agent: a class, an async function, an object, or a factory of agents.

Every mistake becomes one sentence that says what an agent is. Knows nothing of names or import paths.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

from proctor.config.endpoints import NO_PREFERENCE, ModelPreference
from proctor.contracts import Agent, Desk
from proctor.errors import ConfigError, ProctorError, did_you_mean
from proctor.optional_contracts import PrefersModel
from proctor.packages.loading import describe_error

Work = Callable[[Desk], Awaitable[str]]
Settings = Mapping[str, Any]


class NamedAgent:
    """An agent without a name of its own, under the name it was defined by."""

    def __init__(self, work: Work, name: str, prefers: ModelPreference = NO_PREFERENCE) -> None:
        self.name = name
        self.prefers = prefers
        self._work = work

    async def __call__(self, desk: Desk) -> str:
        return await self._work(desk)


def as_agent(thing: Any) -> Agent:
    """An agent passed in Python, checked and named."""
    return adapt_agent(thing, name_of(thing), {})


def adapt_agent(thing: Any, word: str, settings: Settings) -> Agent:
    """The agent that a thing is, or creates."""
    if is_async_function(thing):
        check_settings(thing, word, settings, given=1)
        return with_name(partial(thing, **settings) if settings else thing, thing)
    if is_agent_object(thing):
        if settings:
            raise ConfigError(f"Agent {word!r} is already an agent and takes no settings; leave them out.")
        return with_name(thing, thing)
    if not is_agent_factory(thing):
        raise no_agent_error(word, thing)
    check_settings(thing, word, settings)
    try:
        made = thing(**settings)
    except ProctorError:
        raise
    except Exception as error:
        raise ConfigError(f"Agent {word!r} cannot be created: {describe_error(error)}") from error
    if not is_agent_object(made):
        raise no_agent_error(word, made)
    return with_name(made, made)


def is_async_function(thing: Any) -> bool:
    """Whether it is an async function that takes a desk."""
    return inspect.iscoroutinefunction(thing)


def is_agent_object(thing: Any) -> bool:
    """Whether it is an object that is called like an agent."""
    return not isinstance(thing, type) and callable(thing) and is_async_function(type(thing).__call__)


def is_agent_factory(thing: Any) -> bool:
    """Whether it is a class, or a function that creates an agent from settings alone."""
    if isinstance(thing, type):
        return True
    is_function = inspect.isfunction(thing) or isinstance(thing, partial)
    return is_function and not required_parameters(thing, positional_only=True)


def required_parameters(thing: Any, positional_only: bool = False) -> list[str]:
    """The parameters without a default: positional-only ones, or all."""
    various = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(thing).parameters.values()
    named = [each for each in parameters if each.default is each.empty and each.kind not in various]
    if positional_only:
        return [each.name for each in named if each.kind is not each.KEYWORD_ONLY]
    return [each.name for each in named]


def check_settings(thing: Any, word: str, settings: Settings, given: int = 0) -> None:
    """Refuse settings that an agent does not have, and name missing ones that it requires.

    `given`: how many parameters are filled by the desk.
    """
    parameters = list(inspect.signature(thing).parameters.values())[given:]
    known = [each.name for each in parameters]
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        for name in settings:
            if name not in known:
                nearest = did_you_mean(name, known) if known else "; it has none."
                raise ConfigError(f"Agent {word!r} has no setting {name!r}{nearest}")
    missing = [name for name in required_parameters(thing)[given:] if name not in settings]
    if missing:
        raise ConfigError(
            f"Agent {word!r} needs {', '.join(missing)}; "
            f"pass it with --agent-args '{{…}}', or to create_agent()."
        )


def with_name(work: Any, thing: Any) -> Agent:
    """The agent itself if it has a name; otherwise wrapped under the name it was defined by."""
    if isinstance(getattr(work, "name", None), str):
        return cast(Agent, work)
    prefers = thing.prefers if isinstance(thing, PrefersModel) else NO_PREFERENCE
    return NamedAgent(
        work, name_of(thing), prefers if isinstance(prefers, ModelPreference) else NO_PREFERENCE
    )


def name_of(thing: Any) -> str:
    defined = thing.func if isinstance(thing, partial) else thing
    names = (getattr(thing, "name", None), getattr(defined, "__name__", None), type(thing).__name__)
    return next(name for name in names if isinstance(name, str))


def no_agent_error(word: str, thing: Any) -> ConfigError:
    what = "a plain function" if inspect.isroutine(thing) else f"of type {type(thing).__name__}"
    return ConfigError(
        f"{word!r} is {what}, not an agent; an agent is `async def name(desk)`, "
        f"or a class with `async def __call__(self, desk)`."
    )
