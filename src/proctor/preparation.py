"""Words → everything that is known before anybody is called: settings, endpoint, a loaded environment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from proctor import plugins
from proctor.config.endpoints import EMBEDDED, GIVEN, Endpoint, choose_endpoint
from proctor.config.registry import open_registry
from proctor.config.schema import AUTO, EvalConfig
from proctor.config.sources import resolve
from proctor.contracts import Environment
from proctor.engine.plan import select
from proctor.engine.player import Rules
from proctor.errors import ConfigError, UnknownNameError, did_you_mean
from proctor.host import packages
from proctor.store import metadata
from proctor.task import Task

ROLLOUTS_PER_WORKER = 256


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known before anybody is called."""

    config: EvalConfig
    origins: Mapping[str, str]
    endpoint: Endpoint
    environment: Environment
    provenance: Mapping[str, Any]
    module: str
    found: packages.Found | None = None
    """Where the environment can be loaded from again; None if it was made by hand."""
    sharers: int = 1
    """Evaluations, this one included, that ask the same endpoint at the same time."""

    @property
    def grouped(self) -> bool:
        return self.environment.traits.grouped

    @property
    def name(self) -> str:
        return self.config.name or self.config.env_id

    def workers(self) -> int:
        """In how many processes rollouts are played; 1 means in this one.

        Evaluations that share an endpoint share its budget, and so the processes it takes to use that up.
        """
        config = self.config
        if config.num_workers == AUTO:
            alone = (
                self.found is None
                or config.no_interleave_scoring
                or self.endpoint.client_type in {*EMBEDDED, GIVEN}
                or self.endpoint.is_metered
            )
            return 1 if alone else math.ceil(self.rules().at_once / self.sharers / ROLLOUTS_PER_WORKER)
        return int(config.num_workers)

    def check_workers(self) -> None:
        """Refuse worker processes where they cannot do the work."""
        if self.workers() == 1:
            return
        if self.found is None:
            raise ConfigError("An environment made in Python cannot be made again in a worker; leave out -w.")
        if self.config.no_interleave_scoring:
            raise ConfigError(
                "-N waits for every rollout of the run, and -w plays them apart; give one of them."
            )
        if self.endpoint.client_type == GIVEN:
            raise ConfigError(
                "A model made in Python cannot be made again in a worker; leave out num_workers."
            )
        if self.endpoint.client_type == "local":
            raise ConfigError("Each worker would load the embedded model again; leave out -w.")

    def tasks(self) -> Iterable[Task]:
        config = self.config
        seed = config.seed if config.shuffle else None
        return select(self.environment.tasks(), config.num_examples, seed)

    def selection(self) -> str:
        """Which tasks, and why those."""
        config = self.config
        order = f"in random order (seed {config.seed})" if config.shuffle else "in dataset order"
        tasks = "task" if config.num_examples == 1 else "tasks"
        return f"all tasks {order}" if config.num_examples == -1 else f"{config.num_examples} {tasks} {order}"

    def rules(self) -> Rules:
        config = self.config
        played = config.max_concurrent_generation or config.max_concurrent
        played = min(played, self.endpoint.max_concurrent or played)
        scored = config.max_concurrent_scoring or config.max_concurrent
        at_once = max(played, scored)
        return Rules(
            at_once=at_once,
            generation_at_once=played if played < at_once else None,
            scoring_at_once=scored if scored < at_once else None,
            interleave=not config.no_interleave_scoring,
            grouped=self.grouped,
            max_retries=config.max_retries,
            rollout_seconds=config.timeout,
            scoring_seconds=config.scoring_timeout,
            columns=config.state_columns,
        )


def prepare(
    given: Mapping[str, Any], environ: Mapping[str, str], origins: Mapping[str, str] | None = None
) -> Prepared:
    """Words → settings, endpoint and a loaded environment. Calls nobody.

    `origins` says where the words stand, if they are not flags.
    """
    found = packages.find(given["env_id"], given.get("env_dir_path", "./environments"))
    defaults, source = packages.package_defaults(found)
    config, sources = resolve({**given, "env_id": found.env_id}, defaults, source, origins)
    endpoint = endpoint_of(config, environ)
    environment = packages.load(found, config.env_args)
    configure(environment, config)
    provenance = packages.provenance(found, environment)
    provenance["git_commit"] = metadata.git_commit(found.path.parent) if found.path else None
    return Prepared(
        config=config,
        origins=sources,
        endpoint=endpoint,
        environment=environment,
        provenance=provenance,
        module=found.module,
        found=found,
    )


def endpoint_of(config: EvalConfig, environ: Mapping[str, str]) -> Endpoint:
    """Where the evaluated model is asked, by the registry, the settings and the keys that are there."""
    client_types = plugins.names(plugins.MODELS)
    endpoint = choose_endpoint(
        model=config.model,
        endpoint_id=config.endpoint_id,
        registry=open_registry(config.endpoints_path, client_types),
        provider=config.provider,
        url=config.api_base_url,
        key_var=config.api_key_var,
        client_type=config.api_client_type,
        headers=config.headers,
        request_seconds=config.request_timeout,
        environ=environ,
    )
    if endpoint.client_type not in client_types:
        known = did_you_mean(endpoint.client_type, client_types)
        raise UnknownNameError(f"No model is called {endpoint.client_type!r}{known}")
    return endpoint


def size_for(environment: Environment, config: EvalConfig, at_once: int) -> None:
    """Tell the environment how many rollouts there will be at once, if it wants to know."""
    set_concurrency = getattr(environment, "set_concurrency", None)
    if callable(set_concurrency):
        set_concurrency(config.extra_env_kwargs.get("concurrency", at_once))


def configure(environment: Environment, config: EvalConfig) -> None:
    """Give the environment the settings that are meant for it."""
    extra = {name: value for name, value in config.extra_env_kwargs.items() if name != "concurrency"}
    if extra:
        configure_with = getattr(environment, "configure", None)
        if not callable(configure_with):
            raise ConfigError(f"{config.env_id} takes no settings after it was made; leave out -x.")
        configure_with(extra)
    if config.independent_scoring and environment.traits.grouped:
        names = getattr(getattr(environment, "rubric", None), "group_functions", [])
        raise ConfigError(
            f"{config.env_id} compares the rollouts of a task ({', '.join(names) or 'group scoring'}), "
            f"so they cannot be scored one by one; leave out -i."
        )
