"""Settings as given → everything that is known before the first request: agent, endpoint, environment."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from proctor import __version__, plugins
from proctor.agents.resolve import is_agent, resolve_agent, split_agent_from_model
from proctor.agents.tool_loop import TOOL_LOOP, ToolLoop
from proctor.client.ask_server import build_ask_server
from proctor.cluster.installed import need_ray
from proctor.config.endpoint_choice import choose_endpoint
from proctor.config.endpoints import CUSTOM_CLIENT, EMBEDDED_CLIENTS, NO_PREFERENCE, Endpoint, ModelPreference
from proctor.config.registry import open_registry
from proctor.config.schema import AUTO, DEFAULT_REGISTRY, HERE, EvalConfig
from proctor.config.sources import FLAG, REQUEST, find_stopping_rule, resolve
from proctor.contracts import Agent, EnvironmentProtocol
from proctor.engine.plan import select
from proctor.engine.player import Rules
from proctor.engine.select import find_named_tasks
from proctor.environments import load_environment
from proctor.errors import ConfigError, UnknownNameError, did_you_mean
from proctor.evaluation.early_stop import name_baseline
from proctor.isolation.machine import describe_limits
from proctor.optional_contracts import HasProvenance, PrefersModel, get_fingerprint, get_pass_threshold
from proctor.packages import loading as packages
from proctor.store import metadata
from proctor.task import Task
from proctor.workspaces.spec import WorkspaceSpec

if TYPE_CHECKING:
    from proctor.runtimes.runtime import Provider

ROLLOUTS_PER_WORKER = 256
TASK_FILE_DEFAULTS = {"num_examples": 1, "rollouts_per_example": 1}
"""A task file is tried before it is run."""
TASK_FILE_ORIGIN = "default of a task file"


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known before the first request."""

    config: EvalConfig
    origins: Mapping[str, str]
    endpoint: Endpoint
    environment: EnvironmentProtocol
    provenance: Mapping[str, Any]
    module: str
    found: packages.EnvironmentLocation | None = None
    """Where the environment can be loaded from again; None if it was made by hand."""
    sharers: int = 1
    """Evaluations, this one included, that share the endpoint."""
    suite: str = ""
    """The id of the suite that this evaluation belongs to."""
    agent: Agent | None = None
    """Works on the tasks; None if the environment owns its turns."""
    agent_is_given: bool = False
    """The agent was made by hand, and cannot be made again from its name."""
    runtime_is_given: bool = False
    """So was the runtime."""

    @property
    def grouped(self) -> bool:
        return self.environment.traits.grouped

    @property
    def name(self) -> str:
        return self.config.name or self.config.env_id

    @property
    def package_defaults(self) -> Mapping[str, str]:
        """Settings that the environment's package decided, and where it says so."""
        return {name: origin for name, origin in self.origins.items() if origin.startswith("[tool.")}

    @property
    def pass_threshold(self) -> float:
        """The reward from which a rollout counts as passed."""
        given = self.config.pass_threshold
        return get_pass_threshold(self.environment) if given is None else given

    def workers(self) -> int:
        """In how many processes rollouts are played; 1 means in this one, unless they run elsewhere.

        Evaluations that share an endpoint share its budget, and so the processes it takes to use that up.
        """
        config = self.config
        if config.num_workers == AUTO:
            alone = (
                self.found is None
                or self.agent_is_given
                or self.runtime_is_given
                or config.no_interleave_scoring
                or self.endpoint.client_type in {*EMBEDDED_CLIENTS, CUSTOM_CLIENT}
                or self.endpoint.is_metered
            )
            wanted = math.ceil(self.rules().at_once / self.sharers / ROLLOUTS_PER_WORKER)
            if config.on != HERE:
                return wanted
            return 1 if alone else min(wanted, count_cores())  # more than can run at once only add cost
        return int(config.num_workers)

    @property
    def plays_in_workers(self) -> bool:
        return self.workers() > 1 or self.config.on != HERE

    def check_workers(self) -> None:
        """Refuse worker processes where they cannot do the work."""
        if not self.plays_in_workers:
            return
        if self.found is None:
            raise ConfigError("An environment made in Python cannot be made again in a worker; leave out -w.")
        if self.agent_is_given:
            raise ConfigError(
                "An agent made in Python cannot be made again in a worker; name it by its import path, "
                "or leave out -w."
            )
        if self.runtime_is_given:
            raise ConfigError(
                "A runtime made in Python cannot be made again in a worker; leave out num_workers."
            )
        if self.config.no_interleave_scoring:
            raise ConfigError(
                "-N waits for every rollout of the run, and -w plays them apart; give one of them."
            )
        if self.endpoint.client_type == CUSTOM_CLIENT:
            raise ConfigError(
                "A model made in Python cannot be made again in a worker; leave out num_workers."
            )
        if self.endpoint.client_type == "local":
            raise ConfigError("Each worker would load the embedded model again; leave out -w.")
        if self.config.on != HERE:
            need_ray()

    def tasks(self) -> Iterable[Task]:
        config = self.config
        seed = config.seed if config.shuffle else None
        if config.task_ids:
            chosen = select(find_named_tasks(self.environment.tasks(), config.task_ids), -1, seed)
        else:
            chosen = select(self.environment.tasks(), config.num_examples, seed)
        may_stop = find_stopping_rule(config) is not None and not config.shuffle
        return select(chosen, -1, config.seed) if may_stop else chosen

    def count_tasks(self) -> int | None:
        """How many tasks are evaluated; None if they cannot be counted without reading them."""
        try:
            tasks = self.tasks()
        except Exception:  # reported where the tasks are read
            return None
        return len(tasks) if isinstance(tasks, Sequence) else None

    def is_short_of_tasks(self, counted: int | None) -> bool:
        """Whether -n asks for more tasks than there are."""
        config = self.config
        if counted is None or config.task_ids or find_stopping_rule(config) is not None:
            return False
        return counted < config.num_examples

    def selection(self, counted: int | None) -> str:
        """Which tasks, and why those; `counted` of them."""
        config = self.config
        if isinstance(self.environment, HasProvenance) and config.num_examples == -1 and not config.task_ids:
            return self.environment.selection
        order = f"in random order (seed {config.seed})" if config.shuffle else "in dataset order"
        if (rule := find_stopping_rule(config)) is not None:
            order += f", played in random order (seed {config.seed}) until {rule} is reached"
        if config.task_ids:
            return f"the named tasks {', '.join(map(str, config.task_ids))} {order}"
        if self.origins.get("num_examples") == TASK_FILE_ORIGIN:
            first = "one random task" if config.shuffle else "the first task"
            return f"{first} of the file (--all takes every one)"
        if self.is_short_of_tasks(counted):
            return f"all {counted} tasks {order} (-n {config.num_examples} asks for more than there are)"
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
            start_seconds=config.start_timeout,
            rollout_seconds=config.timeout,
            scoring_seconds=config.scoring_timeout,
            columns=config.state_columns,
        )


def describe_workspaces(environment: EnvironmentProtocol) -> dict[str, Any]:
    """The limits of an environment's workspaces, where they are on this machine."""
    if getattr(environment, "distant_workspaces", None) is not None:
        return {}
    parts = [environment, *getattr(environment, "members", {}).values()]
    parts += getattr(environment, "known", {}).values()
    found = {
        spec.name: describe_limits(spec.limits)
        for part in parts
        for spec in getattr(part, "workspaces", ())
        if isinstance(spec, WorkspaceSpec)
    }
    return {"workspace_limits": found} if found else {}


def describe_code(environment: EnvironmentProtocol) -> dict[str, str]:
    """What the metadata says about the code that plays and the code that scores, where they can be told
    apart. Scores may also change with Proctor's own version."""
    found = get_fingerprint(environment)
    if found is None:
        return {}
    return {"play_hash": found.play, "scoring_hash": f"{found.scoring}-{__version__}"}


def count_cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prepare(
    given: Mapping[str, Any],
    environ: Mapping[str, str],
    origins: Mapping[str, str] | None = None,
    *,
    agent: Agent | None = None,
    runtime: Provider | None = None,
    found: packages.EnvironmentLocation | None = None,
    endpoint: Endpoint | None = None,
) -> Prepared:
    """Resolve settings, agent and endpoint, and load the environment. Sends no request.

    `origins` says where each setting was given, if not as a flag; `agent` and `runtime` were made by hand;
    `found` is where the environment was fetched to; a given `endpoint` is taken as it is.
    """
    found = found or packages.find_environment(given["env_id"], given.get("env_dir_path", "./environments"))
    defaults, source = packages.package_defaults(found)
    given, defaults, origins = resolve_agent_words(given, defaults, origins or {})
    config, sources = resolve({**given, "env_id": found.env_id}, defaults, source, origins)
    # A missing key is reported before anything is loaded, unless the agent prefers an endpoint of its own.
    early = endpoint
    if early is None and config.agent is None and agent is None:
        early = resolve_endpoint(config, environ)
    environment = load_environment(found, config, runtime)
    config, worker = choose_agent(config, environment, agent)
    endpoint = early or resolve_endpoint(config, environ, worker)
    if is_task_file(environment, found):
        config, sources = apply_task_file_defaults(config, sources)
    check_task_selection(config, sources)
    config = name_baseline(config)
    provenance = packages.provenance(found, environment)
    provenance |= describe_workspaces(environment)
    provenance |= describe_code(environment)
    provenance["path"] = found.address
    provenance["git_commit"] = metadata.git_commit(found.path.parent) if found.path else None
    if isinstance(environment, HasProvenance):
        provenance |= environment.provenance
    return Prepared(
        config=config,
        origins=sources,
        endpoint=endpoint,
        environment=environment,
        provenance=provenance,
        module=found.module,
        found=found,
        agent=worker,
        agent_is_given=agent is not None,
        runtime_is_given=runtime is not None,
    )


def resolve_agent_words(
    given: Mapping[str, Any], defaults: Mapping[str, Any], origins: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """The same settings, where a model named in place of an agent becomes the model."""
    if "agent" not in given and "agent" not in defaults:
        return dict(given), dict(defaults), dict(origins)
    path = {**defaults, **given}.get("endpoints_path", DEFAULT_REGISTRY)
    aliases = open_registry(path, plugins.list_names(plugins.MODELS)).endpoints
    refuse_second_environment(given, aliases)
    model = {"model": origins["agent"]} if "agent" in origins else {}
    return (
        split_agent_from_model(given, aliases),
        split_agent_from_model(defaults, aliases),
        {**model, **origins},
    )


def refuse_second_environment(given: Mapping[str, Any], aliases: Collection[str]) -> None:
    """Explain how to name several environments, if the second was given in place of the agent."""
    word, first = given.get("agent"), given.get("env_id")
    if not isinstance(word, str) or word in aliases or is_agent(word):
        return
    try:
        found = packages.find_environment(word, given.get("env_dir_path", "./environments"))
    except ConfigError:
        return
    if found.path is not None or found.registered:  # an installed package can have the name of a model
        raise ConfigError(
            f"{word!r} is an environment, but an agent is expected here; to evaluate several "
            f"environments, put commas between them: {first},{word}"
        )


def choose_agent(
    config: EvalConfig, environment: EnvironmentProtocol, agent: Agent | None = None
) -> tuple[EvalConfig, Agent | None]:
    """The agent that works on the tasks: the given one, the named one or the plain tool loop; None where
    the environment owns its turns."""
    if not environment.traits.wants_agent:
        refuse_agent(config, agent)
        return config, None
    worker = agent or resolve_agent(config)
    steps = worker.max_steps if isinstance(worker, ToolLoop) else config.max_steps
    name = config.agent or (TOOL_LOOP if agent is None else agent.name)
    return replace(config, agent=name, max_steps=steps), worker


def refuse_agent(config: EvalConfig, agent: Agent | None) -> None:
    word = config.agent if agent is None else agent.name
    if agent is None and word == TOOL_LOOP and config.model is not None:
        word = config.model
    if word is not None:
        raise ConfigError(
            f"{config.env_id} owns its turns; leave out {word!r}. A model to evaluate is named by -m."
        )
    if config.max_steps is not None or config.agent_args:
        flag = "--agent-args" if config.agent_args else "--max-steps"
        raise ConfigError(f"{config.env_id} owns its turns and has no agent; leave out {flag}.")


def is_task_file(environment: EnvironmentProtocol, found: packages.EnvironmentLocation) -> bool:
    """Whether it is a file or folder of tasks, rather than a dataset environment."""
    if not environment.traits.wants_agent:
        return False
    is_file = found.path is not None and found.path.is_file()
    return is_file or packages.find_task_source(found) is not None


def apply_task_file_defaults(
    config: EvalConfig, origins: Mapping[str, str]
) -> tuple[EvalConfig, dict[str, str]]:
    """The settings of a task file, which is tried before it is run."""
    changes = {name: value for name, value in TASK_FILE_DEFAULTS.items() if name not in origins}
    return replace(config, **changes), {**origins, **dict.fromkeys(changes, TASK_FILE_ORIGIN)}


def check_task_selection(config: EvalConfig, origins: Mapping[str, str]) -> None:
    """Refuse to both name and count the tasks."""
    chosen = {origins.get("task_ids"), origins.get("num_examples")}
    both = chosen in ({FLAG}, {REQUEST})
    if both and config.num_examples != -1:
        raise ConfigError(
            f"--task-ids names the tasks, and -n {config.num_examples} counts them; give one of them."
        )


def resolve_endpoint(config: EvalConfig, environ: Mapping[str, str], agent: Agent | None = None) -> Endpoint:
    """The evaluated model's endpoint, by the registry, the settings, the agent and the available keys."""
    preferred: ModelPreference = agent.prefers if isinstance(agent, PrefersModel) else NO_PREFERENCE
    client_types = plugins.list_names(plugins.MODELS)
    if config.api_client_type is not None:
        check_client_type(config.api_client_type, client_types)
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
        preferred=preferred,
        ask_server=build_ask_server(environ),
    )
    if agent is not None and preferred.model is not None and not (config.model or config.endpoint_id):
        why = f"agent {agent.name!r} works with it unless -m names another"
        endpoint = replace(endpoint, why=f"{why}; {endpoint.why}" if endpoint.why else why)
    check_client_type(endpoint.client_type, client_types)
    return endpoint


def check_client_type(client_type: str, known: Sequence[str]) -> None:
    if client_type not in known:
        nearest = did_you_mean(client_type, known)
        raise UnknownNameError(f"--api-client-type is {client_type!r}, which is not a client type{nearest}")
