"""The front page of an evaluation: prepare it, run it, return its result.

    prepared = prepare({"env_id": "my-env", "model": "local"}, os.environ)
    result = await run(prepared, listeners=[display])

or, for scripts and notebooks, `await evaluate(environment, model)`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.agents.adapt import as_agent
from proctor.client.contexts import adopt_context
from proctor.config.schema import LATEST
from proctor.contracts import Agent, Desk, EnvironmentProtocol, Listener, Model
from proctor.endpoints.endpoint import SharedEndpoint, open_model
from proctor.endpoints.reply_cache import check_cache
from proctor.environments import set_environment_concurrency
from proctor.errors import ConfigError, RolloutError, StoreError
from proctor.evaluation.execute import Control, Execution, Result
from proctor.evaluation.prepare import Prepared, prepare
from proctor.evaluation.prepare_objects import prepare_instance, prepare_named
from proctor.evaluation.resume import NEWEST
from proctor.evaluation.reuse import ReusePlan, plan_reuse
from proctor.events import Event, RolloutsFinished
from proctor.listeners.resolve import choose_upload
from proctor.optional_contracts import ChecksEnvironment
from proctor.rollout import Rollout, RolloutKey
from proctor.store.index import find_run, search_folders
from proctor.store.resume_rules import check_accepted
from proctor.support.logs import log

if TYPE_CHECKING:
    from proctor.runtimes.runtime import Provider

__all__ = ["LATEST", "NEWEST", "Control", "Prepared", "Result", "evaluate", "prepare", "run"]


async def evaluate(
    environment: EnvironmentProtocol | str,
    model: Model | str | None = None,
    *,
    agent: Agent | Callable[[Desk], Awaitable[str]] | str | None = None,
    runtime: Provider | str | None = None,
    listeners: Sequence[Listener] = (),
    reuse: str | Path | None = None,
    **settings: Any,
) -> Result:
    """Evaluate in Python: every task once by default; settings are those of EvalConfig.

    result = await evaluate(EchoEnvironment("say 1", "say 2"), Scripted(["say 1"]))
    print(result.summary.reward.mean, [rollout.outcome for rollout in result])

    `agent` works on the tasks of an environment that leaves its turns to one: an agent, an async function, or
    a name as on the command line. Without a model, the agent's own or the default one is evaluated. `runtime`
    is where such an environment lives: a Runtime, a LocalRuntime …, or a word as on the command line.
    `reuse` names an earlier run, from which everything that is still valid is taken.
    """
    if model is None or isinstance(model, str):
        adopt_context(os.environ)
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
    upload = choose_upload(asked=False)
    try:
        uploads = [] if upload is None else [upload]
        plan = None if reuse is None else plan_reuse(prepared, find_run(str(reuse), search_folders()))
        result = await run(prepared, [*listeners, *uploads, keep], service=service, reuse=plan)
    finally:
        if service is not None:
            await close_quietly(service.close)
        if upload is not None:
            await close_quietly(upload.close)
            log.info("%s", upload.final_message)
    if result.run.status == "failed":
        raise StoreError(result.run.note)
    order = {task.id: index for index, task in enumerate(prepared.tasks())}
    rollouts = sorted(kept.values(), key=lambda rollout: (order[rollout.task.id], rollout.number))
    return msgspec.structs.replace(result, rollouts=rollouts)


async def run(
    prepared: Prepared,
    listeners: Sequence[Listener] = (),
    *,
    control: Control | None = None,
    resume: str | None = None,
    accept_changed: Collection[str] = (),
    service: SharedEndpoint | None = None,
    reuse: ReusePlan | None = None,
) -> Result:
    """Run a prepared evaluation and store every finished rollout; a given `service` stays open.

    `resume` is the folder of a run, LATEST or NEWEST; settings in `accept_changed` may differ from its own.
    `reuse` is what a new run takes from an old one.
    """
    check_accepted(accept_changed, resume is not None)
    environment = prepared.environment
    prepared.check_workers()
    set_environment_concurrency(environment, prepared.config, prepared.rules().at_once)
    endpoint = service or SharedEndpoint(open_model(prepared.endpoint))
    try:
        await endpoint.check()
        await environment.check()
        check_agent(prepared)
        check_cache(prepared.config.cache, prepared.endpoint)
        check_price(prepared)
        return await Execution(
            prepared, endpoint, listeners, control or Control(), resume, accept_changed, reuse
        ).run()
    except RolloutError as error:  # outside of any rollout: no request can succeed
        raise ConfigError(str(error)) from error
    finally:
        await close_quietly(environment.close)
        if service is None:
            await close_quietly(endpoint.close)


def check_price(prepared: Prepared) -> None:
    """Refuse a budget that could not be kept."""
    if prepared.config.max_cost is not None and prepared.endpoint.tariff is None:
        raise ConfigError(
            f"--max-cost needs the price of {prepared.endpoint.model}, which is not known; give it one in "
            f"the endpoint registry, such as price = {{ input = 0.4, output = 1.6 }}."
        )


def check_agent(prepared: Prepared) -> None:
    """Let an agent that has a `check` refuse before the first rollout."""
    agent: object = prepared.agent
    if isinstance(agent, ChecksEnvironment):
        agent.check(prepared.environment)


async def close_quietly(close: Callable[[], Any]) -> None:
    """Close; a failure is logged, and the results stand."""
    try:
        await close()
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        log.warning("closing failed: %s: %s", type(error).__name__, error)
