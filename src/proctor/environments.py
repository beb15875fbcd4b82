"""Load the environment of a configuration: in this process, or remote, where a runtime serves it.

Knows nothing of models, agents or runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from proctor.api.common import is_slug
from proctor.config.schema import EvalConfig
from proctor.contracts import PASS_THRESHOLD, EnvironmentProtocol
from proctor.errors import ConfigError
from proctor.optional_contracts import Configurable, get_pass_threshold, get_version, set_optional_concurrency
from proctor.packages import loading as packages
from proctor.packages import task_files

if TYPE_CHECKING:
    from proctor.runtimes.remote_environment import RemoteEnvironment
    from proctor.runtimes.runtime import Provider

HOSTED = "hosted"


def load_environment(
    found: packages.EnvironmentLocation, config: EvalConfig, runtime: Provider | None = None
) -> EnvironmentProtocol:
    """The configured environment: in this process, or its tasks with a remote environment."""
    environment: EnvironmentProtocol
    found = replace(found, isolated=config.isolated)
    if runtime is None and config.runtime is None:
        refuse_runtime_args(config)
        environment = packages.load(found, config.env_args)
    else:
        environment = load_remote_environment(found, config, runtime)
    configure_environment(environment, config)
    return environment


def load_remote_environment(
    found: packages.EnvironmentLocation, config: EvalConfig, runtime: Provider | None
) -> RemoteEnvironment:
    batch = packages.load_tasks(found)
    if batch is None:
        raise ConfigError(
            f"{config.env_id} owns its turns; a runtime is for environments made of templates. "
            f"Leave out --runtime."
        )
    if config.env_args:
        raise ConfigError("A runtime loads the environment without arguments; leave out -a.")
    return build_remote_environment(batch, config, runtime)


def runtime_settings(config: EvalConfig) -> Mapping[str, Any]:
    """The runtime's arguments; a server also needs the environment's owner, which its tasks do not name."""
    owner, _, name = config.env_id.partition("/")
    if config.runtime == HOSTED and is_slug(owner) and is_slug(name.partition("@")[0]):
        return {"environment": config.env_id, **config.runtime_args}
    return config.runtime_args


def build_remote_environment(
    batch: task_files.Batch, config: EvalConfig, runtime: Provider | None
) -> RemoteEnvironment:
    """Tasks that are played where a runtime serves their environment."""
    from proctor.runtimes.remote_environment import RemoteEnvironment
    from proctor.runtimes.resolve import resolve_provider

    if runtime is None:
        assert config.runtime is not None
        runtime = resolve_provider(config.runtime, runtime_settings(config), task_files.code_of(batch))
    else:
        refuse_runtime_args(config)
    for task in batch.tasks:
        if (known := batch.environments.get(task.env)) is not None:
            known.check_task(task)  # type: ignore[attr-defined]
    return RemoteEnvironment(
        batch.name,
        task_files.label_members(batch.tasks),
        runtime,
        version=next(map(get_version, batch.environments.values()), None),
        pass_threshold=next(map(get_pass_threshold, batch.environments.values()), PASS_THRESHOLD),
        environments=batch.environments,
    )


def refuse_runtime_args(config: EvalConfig) -> None:
    if config.runtime_args:
        raise ConfigError("--runtime-args are settings of a runtime, but none is named; pass --runtime.")


def set_environment_concurrency(environment: EnvironmentProtocol, config: EvalConfig, at_once: int) -> None:
    """Set how many rollouts will be in flight, if the environment wants to know."""
    set_optional_concurrency(environment, config.extra_env_kwargs.get("concurrency", at_once))


def configure_environment(environment: EnvironmentProtocol, config: EvalConfig) -> None:
    """Apply the settings meant for the environment itself."""
    extra = {name: value for name, value in config.extra_env_kwargs.items() if name != "concurrency"}
    if extra:
        if not isinstance(environment, Configurable):
            raise ConfigError(f"{config.env_id} takes no settings after construction; leave out -x.")
        environment.configure(extra)
    if config.independent_scoring and environment.traits.grouped:
        names = getattr(getattr(environment, "rubric", None), "group_functions", [])
        raise ConfigError(
            f"{config.env_id} compares the rollouts of a task ({', '.join(names) or 'group scoring'}), "
            f"so they cannot be scored one by one; leave out -i."
        )
