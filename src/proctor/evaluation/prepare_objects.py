"""Prepare an evaluation whose environment, model, agent or runtime is a Python object.

Knows nothing of how it is run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.config.endpoints import CUSTOM_CLIENT, Endpoint
from proctor.config.sources import resolve
from proctor.contracts import Agent, EnvironmentProtocol, Model
from proctor.environments import build_remote_environment, configure_environment
from proctor.errors import ConfigError
from proctor.evaluation.early_stop import name_baseline
from proctor.evaluation.prepare import (
    Prepared,
    choose_agent,
    describe_code,
    describe_workspaces,
    prepare,
    resolve_agent_words,
    resolve_endpoint,
)
from proctor.optional_contracts import get_name
from proctor.packages import loading as packages
from proctor.packages.task_files import Batch

if TYPE_CHECKING:
    from proctor.runtimes.runtime import Provider


def prepare_named(
    env_id: str,
    given: dict[str, Any],
    model: Model | str | None,
    agent: Agent | None = None,
    runtime: Provider | None = None,
) -> Prepared:
    """Like prepare(), where the model may be an object."""
    if model is None or isinstance(model, str):
        return prepare({**given, "env_id": env_id}, os.environ, agent=agent, runtime=runtime)
    given = {**given, "env_id": env_id, "model": "scripted"}
    prepared = prepare(given, os.environ, agent=agent, runtime=runtime)
    config = msgspec.structs.replace(prepared.config, model=None)
    return msgspec.structs.replace(
        prepared, config=config, endpoint=Endpoint(model=model.name, client_type=CUSTOM_CLIENT)
    )


def prepare_instance(
    environment: EnvironmentProtocol,
    given: dict[str, Any],
    model: Model | str | None,
    agent: Agent | None = None,
    runtime: Provider | None = None,
) -> Prepared:
    """Like prepare(), for an environment that is an object."""
    name = get_name(environment) or type(environment).__name__
    given, _, _ = resolve_agent_words(given, {}, {})
    config, origins = resolve({**given, "env_id": name}, {})
    config = name_baseline(config)
    if runtime is not None or config.runtime is not None:
        environment = build_remote_environment(batch_of_tasks(name, environment), config, runtime)
    configure_environment(environment, config)
    config, worker = choose_agent(config, environment, agent)
    endpoint = (
        resolve_endpoint(config, os.environ, worker)
        if model is None or isinstance(model, str)
        else Endpoint(model=model.name, client_type=CUSTOM_CLIENT)
    )
    return Prepared(
        config=config,
        origins=origins,
        endpoint=endpoint,
        environment=environment,
        provenance=describe_workspaces(environment) | describe_code(environment),
        module=packages.module_name(name),
        agent=worker,
        agent_is_given=agent is not None,
    )


def batch_of_tasks(name: str, environment: EnvironmentProtocol) -> Batch:
    """The tasks of an environment that was built here and is played elsewhere."""
    if not environment.traits.wants_agent:
        raise ConfigError(f"{name} owns its turns; a runtime is for environments made of templates.")
    return Batch(name=name, tasks=list(environment.tasks()))
