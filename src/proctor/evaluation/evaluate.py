"""The front page of an evaluation: prepare it, run it, return its result.

    prepared = prepare({"env_id": "my-env", "model": "local"}, os.environ)
    result = await run(prepared, listeners=[display])

or, for scripts and notebooks, `await evaluate(environment, model)`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from proctor.agents.adapt import as_agent
from proctor.config.schema import LATEST
<<<<<<< HEAD
from proctor.config.sources import resolve
from proctor.contracts import Agent, ChecksEnvironment, Desk, EnvironmentProtocol, Listener, Model, get_name
=======
from proctor.contracts import Agent, Desk, EnvironmentProtocol, Listener, Model
>>>>>>> main
from proctor.endpoints.endpoint import SharedEndpoint, open_model
from proctor.environments import set_environment_concurrency
from proctor.errors import ConfigError, RolloutError, StoreError
from proctor.evaluation.execute import Control, Execution, Result
from proctor.evaluation.prepare import Prepared, prepare
from proctor.evaluation.prepare_objects import prepare_instance, prepare_named
from proctor.evaluation.resume import NEWEST
from proctor.events import Event, RolloutsFinished
from proctor.rollout import Rollout, RolloutKey
from proctor.runtimes.runtime import Provider
from proctor.support.logs import log

__all__ = ["LATEST", "NEWEST", "Control", "Prepared", "Result", "evaluate", "prepare", "run"]


async def evaluate(
    environment: EnvironmentProtocol | str,
    model: Model | str | None = None,
    *,
    agent: Agent | Callable[[Desk], Awaitable[str]] | str | None = None,
    runtime: Provider | str | None = None,
    listeners: Sequence[Listener] = (),
    **settings: Any,
) -> Result:
    """Evaluate in Python: every task once by default; settings are those of EvalConfig.

    result = await evaluate(EchoEnvironment("say 1", "say 2"), Scripted(["say 1"]))
    print(result.summary.reward.mean, [rollout.outcome for rollout in result])

    `agent` works on the tasks of an environment that leaves its turns to one: an agent, an async function, or
    a name as on the command line. Without a model, the agent's own or the default one is evaluated. `runtime`
    is where such an environment lives: a Runtime, a LocalRuntime …, or a word as on the command line.
    """
    given = {"num_examples": -1, "rollouts_per_example": 1, **settings}
    if isinstance(model, str):
        given["model"] = model
    if isinstance(agent, str):
        given["agent"] = agent
    if isinstance(runtime, str):
        given["runtime"], runtime = runtime, None
    made = None if agent is None or isinstance(agent, str) else as_agent(agent)
    prepared = (
        prepare_named(environment, given, model, made, runtime)
        if isinstance(environment, str)
        else prepare_instance(environment, given, model, made, runtime)
    )
    kept: dict[RolloutKey, Rollout] = {}

    def keep(event: Event) -> None:
        if isinstance(event, RolloutsFinished):
            kept.update({rollout.key: rollout for rollout in event.rollouts})

    service = None if model is None or isinstance(model, str) else SharedEndpoint(model)
    try:
        result = await run(prepared, [*listeners, keep], service=service)
    finally:
        if service is not None:
            await close_quietly(service.close)
    if result.run.status == "failed":
        raise StoreError(result.run.note)
    order = {task.id: index for index, task in enumerate(prepared.tasks())}
    rollouts = sorted(kept.values(), key=lambda rollout: (order[rollout.task.id], rollout.number))
    return msgspec.structs.replace(result, rollouts=rollouts)


<<<<<<< HEAD
def prepare_named(
    env_id: str,
    given: dict[str, Any],
    model: Model | str | None,
    agent: Agent | None = None,
    runtime: Provider | None = None,
) -> Prepared:
    """Like prepare(), where the model may have been made by hand."""
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
    """Like prepare(), for an environment that was made by hand."""
    name = get_name(environment) or type(environment).__name__
    given, _, _ = resolve_agent_words(given, {}, {})
    config, origins = resolve({**given, "env_id": name}, {})
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
        provenance={},
        module=packages.module_name(name),
        agent=worker,
        agent_is_given=agent is not None,
    )


def batch_of_tasks(name: str, environment: EnvironmentProtocol) -> Batch:
    """The tasks of an environment that was made here, and is to be played elsewhere."""
    if not environment.traits.wants_agent:
        raise ConfigError(f"{name} owns its turns; a runtime is for environments made of templates.")
    return Batch(name=name, tasks=list(environment.tasks()))


=======
>>>>>>> main
async def run(
    prepared: Prepared,
    listeners: Sequence[Listener] = (),
    *,
    control: Control | None = None,
    resume: str | None = None,
    service: SharedEndpoint | None = None,
) -> Result:
    """Run a prepared evaluation and store every finished rollout; a given `service` stays open."""
    environment = prepared.environment
    prepared.check_workers()
    set_environment_concurrency(environment, prepared.config, prepared.rules().at_once)
    endpoint = service or SharedEndpoint(open_model(prepared.endpoint))
    try:
        await endpoint.check()
        await environment.check()
        check_agent(prepared)
        return await Execution(prepared, endpoint, listeners, control or Control(), resume).run()
    except RolloutError as error:  # outside of any rollout: no request can succeed
        raise ConfigError(str(error)) from error
    finally:
        await close_quietly(environment.close)
        if service is None:
            await close_quietly(endpoint.close)


def check_agent(prepared: Prepared) -> None:
<<<<<<< HEAD
    """Have an agent that can tell beforehand say whether it could work at all."""
    agent: object = prepared.agent
    if isinstance(agent, ChecksEnvironment):
        agent.check(prepared.environment)
=======
    """Let an agent that has a `check` refuse before the first rollout."""
    check = getattr(prepared.agent, "check", None)
    if callable(check):
        check(prepared.environment)
>>>>>>> main


async def close_quietly(close: Callable[[], Any]) -> None:
    """Close; a failure is logged, and the results stand."""
    try:
        await close()
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        log.warning("closing failed: %s: %s", type(error).__name__, error)
