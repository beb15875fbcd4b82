"""Turn a request into a run that may be created: resolve everything, and reject by name what is wrong.

Unless an environment is for its writers only, read access suffices to run it, with your own secrets and
balance. Knows nothing of HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Row

from proctor.api.field_problems import MOST_PROBLEMS, FieldProblem, refuse
from proctor.api.hub import ROLE_RANK
from proctor.api.runs import LONGEST_TIMEOUT_MINUTES, NewRun
from proctor.api.secrets import problem_with_name, problem_with_value
from proctor.config.hosted import find_hosted_problems
from proctor.run import ENDED
from proctor.server.datasets.pins import pin_datasets, save_pins
from proctor.server.gateway.models import ModelRoute
from proctor.server.gateway.requests import need_price
from proctor.server.hub.access import role_of
from proctor.server.hub.records import resolve_version
from proctor.server.hub.run_policy import need_may_run
from proctor.server.ledger import records as ledger
from proctor.server.ledger.estimate import estimate_range
from proctor.server.ledger.past_rollouts import PlannedRun
from proctor.server.ledger.records import Standing
from proctor.server.names import check_name
from proctor.server.people.records import need_team
from proctor.server.people.tokens import Caller, find_user_caller
from proctor.server.problems import InvalidError, NotFoundError
from proctor.server.runs import queue, records
from proctor.server.runs.records import Submission
from proctor.server.runs.refusals import Refusals
from proctor.server.runs.rights import need_owner
from proctor.server.runs.sharing import need_readable_run, set_visibility
from proctor.server.secrets import resolution
from proctor.server.secrets.vault import Vault

HIGHEST_COST_USD = 1_000_000_000
AT_ONCE = Refusals()
"""Raises what is wrong."""


class ExaminedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a run, with everything it names resolved."""

    new: NewRun
    route: ModelRoute
    environment: Row[Any]
    version: Row[Any]
    settings: Mapping[str, Any]
    datasets: list[str]
    """The versions that its settings name."""
    payer: str
    to_hold: int | None
    """None if the payer has no limit."""


# What can be rejected without any lookup


def check_new_run(new: NewRun, refusals: Refusals = AT_ONCE) -> NewRun:
    """The request, without the settings that were refused."""
    with refusals.at("timeout_minutes"):
        check_limits(new.timeout_minutes, None)
    with refusals.at("max_cost_usd"):
        check_limits(None, new.max_cost_usd)
    with refusals.at("name"):
        check_name(new.name, "name")
    refused = dict(islice(find_hosted_problems(new.settings), MOST_PROBLEMS + 1))
    with refusals.at("settings"):
        refuse(FieldProblem(f"settings.{name}", problem) for name, problem in refused.items())
    for name, value in new.custom_secrets.items():
        with refusals.at():
            check_custom_secret(name, value)
    with refusals.at("visibility"):
        if new.visibility == "team" and new.team is None:
            raise InvalidError(
                "The run belongs to no team; name one, or share it with the readers of its environment.",
                field="visibility",
            )
    is_known = len(refused) <= MOST_PROBLEMS  # of all settings, whether they are refused
    left = {name: value for name, value in new.settings.items() if is_known and name not in refused}
    return replace(new, settings=left)


def check_custom_secret(name: str, value: str) -> None:
    problem = problem_with_name(name) or problem_with_value(name, value)
    if problem:
        raise InvalidError(problem, field=f"custom_secrets.{name}")


def check_limits(timeout_minutes: int | None, max_cost_usd: float | None) -> None:
    """For a new run, and for one that is resumed, where omitted values stay as they were."""
    if timeout_minutes is not None and not 1 <= timeout_minutes <= LONGEST_TIMEOUT_MINUTES:
        raise InvalidError(
            f"timeout_minutes is {timeout_minutes}; it must be between 1 and {LONGEST_TIMEOUT_MINUTES}.",
            field="timeout_minutes",
        )
    if max_cost_usd is not None and not 0 < max_cost_usd <= HIGHEST_COST_USD:
        raise InvalidError(
            f"max_cost_usd must be more than 0 and at most {HIGHEST_COST_USD:,}.", field="max_cost_usd"
        )


# What needs the database


def examine(
    connection: Connection,
    caller: Caller,
    new: NewRun,
    route: ModelRoute | None,
    refusals: Refusals = AT_ONCE,
) -> ExaminedRun | None:
    """Everything that a run needs before it is created; None if something was refused. Changes nothing."""
    payer = caller.user if new.team is None else None
    if new.team is not None:
        with refusals.at("team"):
            need_team(connection, caller, new.team)
            payer = new.team
    found: list[tuple[Row[Any], Row[Any]]] = []
    with refusals.at("environment"):
        found.append(resolve_version(connection, caller, new.environment))
    if not found:
        return None
    environment, version = found[0]
    with refusals.at():
        need_may_run(connection, caller, environment)
    with refusals.at("custom_secrets"):
        refuse_missing_secrets(connection, caller, environment, version, new.custom_secrets)
    with refusals.at("settings.until_decided"):
        check_baseline(connection, caller, new.settings)
    settings, datasets = dict(new.settings), list[str]()
    with refusals.at("settings.env_args"):
        settings, datasets = pin_datasets(connection, caller, new.settings)
    if route is None or payer is None:  # a refusal would name the balance of others
        return None
    to_hold = None
    with refusals.at("" if new.max_cost_usd is None else "max_cost_usd"):
        to_hold = find_new_hold(connection, caller, new, route, environment, version)
    return ExaminedRun(
        new=new,
        route=route,
        environment=environment,
        version=version,
        settings=settings,
        datasets=datasets,
        payer=payer,
        to_hold=to_hold,
    )


def submit(
    connection: Connection,
    caller: Caller,
    vault: Vault,
    new: NewRun,
    route: ModelRoute,
    suite: str | None = None,
) -> str:
    """Create the run, store its secrets, hold its money: all of it or nothing. Runs that are started together
    share the id of a suite."""
    run = examine(connection, caller, new, route)
    assert run is not None, "what is refused was raised"
    asked = Submission(
        name=new.name,
        owner=caller.user,
        team=new.team,
        environment_id=run.environment.id,
        version_id=run.version.id,
        environment=f"{run.environment.owner}/{run.environment.name}",
        version=run.version.version,
        content_hash=run.version.content_hash,
        model=route.name,
        settings=run.settings,
        permissions=new.permissions,
        timeout_minutes=new.timeout_minutes,
        max_cost=find_budget(new),
        suite=suite,
    )
    run_id = records.add_run(connection, asked, time.time())
    save_pins(connection, run_id, run.datasets)
    if new.visibility is not None:
        set_visibility(connection, vault, queue.find_run(connection, run_id), new.visibility)
    resolution.save_run_secrets(connection, vault, run_id, new.custom_secrets)
    if run.to_hold is not None:
        ledger.hold(connection, run_id, run.payer, run.to_hold)
    return run_id


# Its money


def find_budget(new: NewRun) -> int | None:
    return None if new.max_cost_usd is None else ledger.millionths(new.max_cost_usd)


def find_new_hold(
    connection: Connection,
    caller: Caller,
    new: NewRun,
    route: ModelRoute,
    environment: Row[Any],
    version: Row[Any],
) -> int | None:
    """What to hold for a run that does not exist yet; refused if its payer lacks it."""
    payer = new.team or caller.user
    standing = Standing(
        payer=payer, available=ledger.sum_available(connection, payer), budget=find_budget(new)
    )
    planned = PlannedRun(
        environment_id=environment.id,
        version_id=version.id,
        model=route.name,
        price=route.price,
        settings=new.settings,
        payer=payer,
        reader=find_user_caller(connection, caller.user),  # the hold shows in their balance
    )
    amount = sum_to_hold(connection, planned, standing, route)
    if amount is not None:
        ledger.check_hold(connection, payer, amount)
    return amount


def check_baseline(connection: Connection, caller: Caller, settings: Mapping[str, Any]) -> None:
    """A run that ends once it is better or worse than another needs one that its owner may read, and that
    does not change any more."""
    baseline = settings.get("until_decided")
    if baseline is None:
        return
    field = "settings.until_decided"
    try:
        row, _ = need_readable_run(connection, caller, baseline)
    except NotFoundError as error:
        raise InvalidError(
            f"There is no run {baseline[:200]!r} on this server that you may read; name one by its whole id, "
            f"or upload yours with `proctor eval push`.",
            field=field,
        ) from error
    if row.status not in ENDED:
        raise InvalidError(f"{row.id} has not ended; wait for it, or name another baseline.", field=field)


def hold_cost(connection: Connection, run_id: str, route: ModelRoute) -> None:
    """Hold what the rest of a run may cost, so that runs that start together do not spend the same money."""
    row = queue.find_run(connection, run_id)
    standing = ledger.find_standing(connection, row.owner, run_id)
    planned = PlannedRun(
        environment_id=row.environment_id,
        version_id=row.version_id,
        model=route.name,
        price=route.price,
        settings=row.settings,
        payer=standing.payer,
        reader=find_user_caller(connection, row.owner),
    )
    amount = sum_to_hold(connection, planned, standing, route)
    if amount is not None:
        ledger.hold(connection, run_id, standing.payer, amount)


def sum_to_hold(
    connection: Connection, planned: PlannedRun, standing: Standing, route: ModelRoute
) -> int | None:
    """What is left of the run's own limit; else its estimated cost, if there is an estimate. None if its
    payer has no limit."""
    if standing.refusal is not None:
        raise standing.refusal
    if standing.available is None:
        return None
    if not planned.settings.get("api_base_url"):
        need_price(route, standing.payer)
    if standing.budget is not None:
        return standing.budget
    return ledger.millionths(estimate_range(connection, planned).likely or 0.0)


# Its rights and its secrets


def check_resumable(connection: Connection, run: Row[Any]) -> None:
    """What a run needed when it was requested, its owner must still have when it is resumed and when a host
    claims it."""
    if run.kind != "hosted" or run.version_id is None:
        return  # refused elsewhere
    owner = find_user_caller(connection, run.owner)
    need_owner(connection, owner, run.team)
    environment, version = resolve_version(connection, owner, f"{run.environment}@{run.version}")
    need_may_run(connection, owner, environment)
    refuse_missing_secrets(
        connection, owner, environment, version, resolution.list_run_secret_names(connection, run.id)
    )


def refuse_missing_secrets(
    connection: Connection,
    caller: Caller,
    environment: Row[Any],
    version: Row[Any],
    custom: Collection[str],
) -> None:
    """An environment declares the secrets it needs; a run without one would fail after it was paid for."""
    may_write = ROLE_RANK.get(role_of(connection, caller, environment) or "", 0) >= ROLE_RANK["write"]
    given = resolution.list_available_names(connection, environment.id, may_write=may_write)
    lacking = resolution.find_missing(version.secrets, given | set(custom))
    if lacking:
        slug = f"{environment.owner}/{environment.name}"
        raise InvalidError(
            f"{slug} needs {', '.join(lacking)}; set it with `proctor secret set {lacking[0]} --env {slug}`, "
            f"or pass it with --custom-secrets {','.join(lacking)}.",
            code="missing_secret",
            names=lacking,
        )
