"""What an environment is: what its source says, and, if it can be loaded, what it says of itself.

Loading may fail. Then that is told, with all that is known without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.contracts import Environment, Traits
from proctor.env.group import EnvGroup
from proctor.env.rubric import Rubric, RubricGroup
from proctor.errors import ConfigError, ProctorError
from proctor.packages import loading as packages
from proctor.packages.loading import Found
from proctor.packages.source import Argument, Source, read_source
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


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """The first task."""

    id: TaskId
    prompt: Sequence[Message]
    answer: Any = ""
    info: Mapping[str, Any] = {}


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What only the living environment knows."""

    kind: str
    traits: Traits
    tasks: int | None = None
    """None where they are read one by one, and nobody has counted them."""
    example: Example | None = None
    rewards: tuple[RewardInfo, ...] = ()
    tools: tuple[ToolInfo, ...] = ()
    parser: str | None = None
    max_turns: int | None = None
    pass_threshold: float = 0.5


class Info(msgspec.Struct, frozen=True, kw_only=True):
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
    loaded: Loaded | None = None
    problem: str = ""
    """Why it could not be loaded."""


def info(env_id: str, env_dir: str, arguments: Mapping[str, Any]) -> Info:
    found = packages.find(env_id, env_dir)
    known = without_loading(found)
    try:
        loaded = told_by(packages.load(found, arguments))
    except ProctorError as error:
        return msgspec.structs.replace(known, problem=known.problem or str(error))
    return msgspec.structs.replace(known, loaded=loaded)


def without_loading(found: Found) -> Info:
    file = packages.main_file(found)
    source = read_source(file) if file is not None and file.suffix == ".py" else Source(file=Path())
    files = packages.source_files(found)
    problem = f"{source.file}:{source.fault_line}: {source.fault}" if source.fault else ""
    try:
        defaults, _ = packages.package_defaults(found)
    except ConfigError as error:
        defaults, problem = {}, problem or str(error)
    path = found.path or file
    return Info(
        name=found.env_id,
        module=found.module,
        path=str(path) if path else None,
        version=packages.version_of(found),
        content_hash=packages.hash_of(files) if files else None,
        description=source.description,
        arguments=source.arguments,
        takes_any=source.takes_any,
        defaults=defaults,
        problem=problem,
    )


def told_by(environment: Environment) -> Loaded:
    try:
        tasks = environment.tasks()
        first = next(iter(tasks), None)
    except ProctorError:
        raise
    except Exception as error:
        raise ConfigError(f"Reading the tasks failed: {packages.told(error)}") from error
    example = None
    if first is not None:
        example = Example(id=first.id, prompt=first.prompt, answer=first.answer, info=first.info)
    parser = getattr(environment, "parser", None)
    return Loaded(
        kind=type(environment).__name__,
        traits=environment.traits,
        tasks=len(tasks) if isinstance(tasks, Sequence) else None,
        example=example,
        rewards=tuple(rewards_of(environment)),
        tools=tuple(tools_of(environment)),
        parser=type(parser).__name__ if parser is not None else None,
        max_turns=getattr(environment, "max_turns", None),
        pass_threshold=float(getattr(environment, "pass_threshold", 0.5)),
    )


def rewards_of(environment: Environment) -> Iterator[RewardInfo]:
    if isinstance(environment, EnvGroup):
        for name, member in environment.members.items():
            for reward in rewards_of(member):
                yield msgspec.structs.replace(reward, name=f"{name}.{reward.name}")
        return
    rubric = getattr(environment, "rubric", None)
    yield from functions_of(rubric) if isinstance(rubric, Rubric) else ()


def functions_of(rubric: Rubric) -> Iterator[RewardInfo]:
    if isinstance(rubric, RubricGroup):
        for part in rubric.rubrics:
            yield from functions_of(part)
    for function, weight in zip(rubric.functions, rubric.weights, strict=True):
        yield RewardInfo(name=function.name, weight=weight, grouped=function.is_group)


def tools_of(environment: Environment) -> Iterator[ToolInfo]:
    if isinstance(environment, EnvGroup):
        for member in environment.members.values():
            yield from tools_of(member)
        return
    for tool in getattr(environment, "tools", {}).values():
        yield ToolInfo(name=tool.spec.name, description=tool.spec.description)
    for server in getattr(environment, "servers", ()):
        yield ToolInfo(name=f"{server.name} (MCP server)", description="names its tools when it is started")
