"""Turn a request into a run that may be created: resolve everything, and reject by name what is wrong.

Unless an environment is for its writers only, read access suffices to run it, with your own secrets and
balance. Knows nothing of HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row

from proctor.api.hub import ROLE_RANK
from proctor.api.runs import LONGEST_TIMEOUT_MINUTES, NewRun
from proctor.config.hosted import check_hosted
from proctor.server.datasets.pins import pin_datasets, save_pins
from proctor.server.gateway.models import ModelRoute
from proctor.server.gateway.requests import need_price
from proctor.server.hub.access import role_of
from proctor.server.hub.records import resolve_version
from proctor.server.hub.run_policy import need_may_run
from proctor.server.ledger import records as ledger
from proctor.server.ledger.estimate import PlannedRun, estimate_cost
from proctor.server.ledger.records import Standing
from proctor.server.names import check_name
from proctor.server.people.records import need_team
from proctor.server.people.tokens import Caller, find_user_caller
from proctor.server.problems import InvalidError
from proctor.server.runs import queue, records
from proctor.server.runs.records import Submission
from proctor.server.runs.rights import need_owner
from proctor.server.runs.sharing import set_visibility
from proctor.server.secrets import resolution
from proctor.server.secrets.vault import Vault

HIGHEST_COST_USD = 1_000_000_000


def check_new_run(new: NewRun) -> None:
    """What can be rejected without any lookup."""
    check_limits(new.timeout_minutes, new.max_cost_usd)
    check_name(new.name, "name")
    check_hosted(new.settings)


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
    if new.team is not None:
        need_team(connection, caller, new.team)
    environment, version = resolve_version(connection, caller, new.environment)
    need_may_run(connection, caller, environment)
    refuse_missing_secrets(connection, caller, environment, version, new.custom_secrets)
    settings, pinned = pin_datasets(connection, caller, new.settings)
    asked = Submission(
        name=new.name,
        owner=caller.user,
        team=new.team,
        environment_id=environment.id,
        version_id=version.id,
        environment=f"{environment.owner}/{environment.name}",
        version=version.version,
        content_hash=version.content_hash,
        model=route.name,
        settings=settings,
        permissions=new.permissions,
        timeout_minutes=new.timeout_minutes,
        max_cost=None if new.max_cost_usd is None else ledger.millionths(new.max_cost_usd),
        suite=suite,
    )
    run_id = records.add_run(connection, asked, time.time())
    save_pins(connection, run_id, pinned)
    if new.visibility is not None:
        set_visibility(connection, vault, queue.find_run(connection, run_id), new.visibility)
    resolution.save_run_secrets(connection, vault, run_id, new.custom_secrets)
    hold_cost(connection, run_id, route)
    return run_id


def hold_cost(connection: Connection, run_id: str, route: ModelRoute) -> None:
    """Hold what the run may cost, so that runs that start together do not spend the same money."""
    row = queue.find_run(connection, run_id)
    standing = ledger.find_standing(connection, row.owner, run_id)
    if standing.refusal is not None:
        raise standing.refusal
    if standing.available is not None:
        if not row.settings.get("api_base_url"):
            need_price(route, standing.payer)
        ledger.hold(connection, run_id, standing.payer, sum_to_hold(connection, row, standing, route))


def sum_to_hold(connection: Connection, row: Row[Any], standing: Standing, route: ModelRoute) -> int:
    """What is left of the run's own limit; else its estimated cost, if there is an estimate."""
    if standing.budget is not None:
        return standing.budget
    planned = PlannedRun(
        environment_id=row.environment_id,
        version_id=row.version_id,
        model=route.name,
        price=route.price,
        settings=row.settings,
        payer=standing.payer,
        reader=find_user_caller(connection, row.owner),  # the hold shows in their balance
    )
    return ledger.millionths(estimate_cost(connection, planned).likely_usd or 0.0)


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
