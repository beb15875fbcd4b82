"""What an environment is: what its source says, and, if it can be loaded, what it says about itself.

Loading may fail. Then that is describe_error, with all that is known without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.contracts import PASS_THRESHOLD, EnvironmentProtocol, Traits
from proctor.env.group import EnvGroup
from proctor.env.rubric import Rubric, RubricGroup
from proctor.errors import ConfigError, ProctorError
from proctor.optional_contracts import get_pass_threshold
from proctor.packages import loading as packages
from proctor.packages.loading import EnvironmentLocation
from proctor.packages.source import Argument, EnvironmentSource, read_source
from proctor.task import TaskId
from proctor.trace import Message


class RewardInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One function of the rubric."""

    name: str
    weight: float
    grouped: bool = False
    """It compares the rollouts of a task."""


class ToolInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str = ""


class ExampleTask(msgspec.Struct, frozen=True, kw_only=True):
    """The first task."""

    id: TaskId
    prompt: Sequence[Message]
    answer: Any = ""
    info: Mapping[str, Any] = {}


class LoadedDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What only the living environment knows."""

    kind: str
    traits: Traits
    tasks: int | None = None
    """None if they are read one by one and were not counted."""
    example: ExampleTask | None = None
    rewards: tuple[RewardInfo, ...] = ()
    tools: tuple[ToolInfo, ...] = ()
    parser: str | None = None
    max_turns: int | None = None
    pass_threshold: float = PASS_THRESHOLD


class EnvironmentDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known about one environment."""

    name: str
    module: str
    path: str | None = None
    version: str | None = None
    content_hash: str | None = None
    description: str = ""
    arguments: tuple[Argument, ...] = ()
    takes_any: bool = False
    defaults: Mapping[str, Any] = {}
    """Settings of its package for an evaluation."""
    loaded: LoadedDetails | None = None
    problem: str = ""
    """Why it could not be loaded."""


def describe_environment(env_id: str, env_dir: str, arguments: Mapping[str, Any]) -> EnvironmentDetails:
    found = packages.find_environment(env_id, env_dir)
    known = describe_without_loading(found)
    try:
        loaded = describe_loaded(packages.load(found, arguments))
    except ProctorError as error:
        return msgspec.structs.replace(known, problem=known.problem or str(error))
    return msgspec.structs.replace(known, loaded=loaded)


def describe_without_loading(found: EnvironmentLocation) -> EnvironmentDetails:
    file = packages.main_file(found)
    source = (
        read_source(file) if file is not None and file.suffix == ".py" else EnvironmentSource(file=Path())
    )
    files = packages.source_files(found)
    problem = f"{source.file}:{source.fault_line}: {source.fault}" if source.fault else ""
    try:
        defaults, _ = packages.package_defaults(found)
    except ConfigError as error:
        defaults, problem = {}, problem or str(error)
    path = found.path or file
    return EnvironmentDetails(
        name=found.env_id,
        module=found.module,
        path=str(path) if path else None,
        version=packages.version_of(found),
        content_hash=packages.hash_files(files) if files else None,
        description=source.description,
        arguments=source.arguments,
        takes_any=source.takes_any,
        defaults=defaults,
        problem=problem,
    )


def describe_loaded(environment: EnvironmentProtocol) -> LoadedDetails:
    try:
        tasks = environment.tasks()
        first = next(iter(tasks), None)
    except ProctorError:
        raise
    except Exception as error:
        raise ConfigError(f"Reading the tasks failed: {packages.describe_error(error)}") from error
    example = None
    if first is not None:
        example = ExampleTask(id=first.id, prompt=first.prompt, answer=first.answer, info=first.info)
    parser = getattr(environment, "parser", None)
    return LoadedDetails(
        kind=type(environment).__name__,
        traits=environment.traits,
        tasks=len(tasks) if isinstance(tasks, Sequence) else None,
        example=example,
        rewards=tuple(list_rewards(environment)),
        tools=tuple(list_tools(environment)),
        parser=type(parser).__name__ if parser is not None else None,
        max_turns=getattr(environment, "max_turns", None),
        pass_threshold=get_pass_threshold(environment),
    )


def list_rewards(environment: EnvironmentProtocol) -> Iterator[RewardInfo]:
    if isinstance(environment, EnvGroup):
        for name, member in environment.members.items():
            for reward in list_rewards(member):
                yield msgspec.structs.replace(reward, name=f"{name}.{reward.name}")
        return
    rubric = getattr(environment, "rubric", None)
    yield from list_reward_functions(rubric) if isinstance(rubric, Rubric) else ()


def list_reward_functions(rubric: Rubric) -> Iterator[RewardInfo]:
    if isinstance(rubric, RubricGroup):
        for part in rubric.rubrics:
            yield from list_reward_functions(part)
    for function, weight in zip(rubric.functions, rubric.weights, strict=True):
        yield RewardInfo(name=function.name, weight=weight, grouped=function.is_group)


def list_tools(environment: EnvironmentProtocol) -> Iterator[ToolInfo]:
    if isinstance(environment, EnvGroup):
        for member in environment.members.values():
            yield from list_tools(member)
        return
    for tool in getattr(environment, "tools", {}).values():
        yield ToolInfo(name=tool.spec.name, description=tool.spec.description)
    for server in getattr(environment, "servers", ()):
        yield ToolInfo(name=f"{server.name} (MCP server)", description="names its tools when it is started")
