"""Check a request for a run: the same steps for one that is started and for one that is only looked at.

Knows nothing of HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Row, select

from proctor import plugins
from proctor.agents.tool_loop import TOOL_LOOP
from proctor.api.field_problems import MOST_PROBLEMS, find_body_problems, refuse
from proctor.api.hub import ROLE_RANK
from proctor.api.runs import NewRun, RunCheck, RunDefaults, RunProblem
from proctor.server.db.tables import members, namespaces, roles, users
from proctor.server.gateway.models import ModelRoute
from proctor.server.gateway.outbound import check_endpoint_url
from proctor.server.hub.access import role_of
from proctor.server.hub.records import resolve_version
from proctor.server.hub.tasks import is_taskset
from proctor.server.ledger.estimate import whole_number
from proctor.server.people.tokens import Caller
from proctor.server.platform import Platform
from proctor.server.problems import ApiError, ForbiddenError, InvalidError
from proctor.server.quotas import check_pending, check_storage
from proctor.server.requests import check_tables
from proctor.server.runs import submission
from proctor.server.runs.refusals import Refusals
from proctor.server.runs.streams import name_reader
from proctor.server.secrets.origins import list_run_secrets

FIRST_WORD = re.compile(r"[^.\[]*")
MOST_NAMES = 5
"""Of users who could grant something."""
SIZES = ("num_examples", "rollouts_per_example")
OF_ADMINS = frozenset({"balance", "budget", "no_price", "no_model", "payment_required", "quota_exceeded"})
OF_OWNERS = frozenset({"run_policy", "missing_secret"})
"""Codes of refusals that admins of the server, or owners of the environment, can lift."""


def need_starter(caller: Caller) -> None:
    caller.need("runs:write")
    if caller.kind != "user":
        raise ForbiddenError("A run cannot start runs.")


async def need_valid(platform: Platform, new: NewRun) -> tuple[NewRun, ModelRoute]:
    """Refuse what needs no database to be refused; returns the request with its model."""
    new, route = await validate(platform, new, submission.AT_ONCE)
    assert route is not None, "what is refused was raised"
    return new, route


async def validate(platform: Platform, new: NewRun, refusals: Refusals) -> tuple[NewRun, ModelRoute | None]:
    is_small = False
    with refusals.at():
        check_tables(new)
        is_small = True
    if not is_small:
        new = replace(new, settings={}, custom_secrets={})
    new = submission.check_new_run(new, refusals)
    own = new.settings.get("api_base_url")
    if isinstance(own, str):
        with refusals.at("settings.api_base_url"):
            await check_endpoint_url(own, platform.settings.allowed_endpoint_hosts)
    route = None
    with refusals.at("model"):
        new, route = platform.models.resolve_for_agent(new)
    return new, route


def check_room(
    connection: Connection, platform: Platform, caller: Caller, refusals: Refusals = submission.AT_ONCE
) -> None:
    with refusals.at():
        check_pending(connection, caller.user, platform.settings.quotas)
    with refusals.at():
        check_storage(connection, caller.user, platform.settings.quotas)


# Without starting it


def read_request(body: Any) -> tuple[NewRun, list[RunProblem]]:
    """The fields of a request that can be read, and what is wrong with the others."""
    found = list(islice(find_body_problems(body, NewRun), MOST_PROBLEMS + 1))
    if not isinstance(body, dict) or len(found) > MOST_PROBLEMS:
        refuse(found)
    wrong = {FIRST_WORD.match(problem.field).group() for problem in found}  # type: ignore[union-attr]
    given = {"environment": "", **{name: value for name, value in body.items() if name not in wrong}}
    problems = [RunProblem(field=each.field, code=InvalidError.code, message=each.message) for each in found]
    return msgspec.convert(given, NewRun, strict=False), problems


async def check_run(
    platform: Platform, caller: Caller, new: NewRun, misshapen: Sequence[RunProblem]
) -> RunCheck:
    """All that is wrong with a request, and what the run would have. Nothing is created."""
    refusals = Refusals(collects=True)
    refusals.add(list(misshapen))
    with refusals.at():
        need_starter(caller)
    new, route = await validate(platform, new, refusals)

    def work(connection: Connection) -> RunCheck:
        check_room(connection, platform, caller, refusals)
        submission.examine(connection, caller, new, route, refusals)
        return describe_check(connection, caller, new, route, refusals.problems)

    async with platform.reads.turn(name_reader(caller)):
        return await platform.database.read(work)


def describe_check(
    connection: Connection,
    caller: Caller,
    new: NewRun,
    route: ModelRoute | None,
    problems: Sequence[RunProblem],
) -> RunCheck:
    payer, model = new.team or caller.user, None if route is None else route.name
    try:
        environment, version = resolve_version(connection, caller, new.environment)
    except ApiError:  # which is one of the problems
        found = [with_grantors(connection, problem, None) for problem in problems]
        return RunCheck(may_start=False, problems=found, model=model, payer=payer)
    may_write = ROLE_RANK.get(role_of(connection, caller, environment) or "", 0) >= ROLE_RANK["write"]
    takes_agent = is_taskset(connection, version.id)
    return RunCheck(
        may_start=not problems,
        problems=[with_grantors(connection, problem, environment) for problem in problems],
        environment=f"{environment.owner}/{environment.name}",
        version=version.version,
        model=model,
        payer=payer,
        secrets=list_run_secrets(
            connection, environment, version.secrets, new.custom_secrets, may_write=may_write
        ),
        permissions=new.permissions,
        defaults=find_defaults(version.check_facts),
        takes_agent=takes_agent,
        agents=[TOOL_LOOP, *plugins.list_names(plugins.AGENTS)] if takes_agent else [],
    )


def find_defaults(facts: dict[str, Any]) -> RunDefaults:
    examples, each = (whole_number(name, {}, facts) for name in SIZES)
    return RunDefaults(
        num_examples=examples,
        rollouts_per_example=each,
        from_package=any(name in facts for name in SIZES),
    )


# Who could help


def with_grantors(connection: Connection, problem: RunProblem, environment: Row[Any] | None) -> RunProblem:
    if problem.code in OF_ADMINS:
        return replace(problem, ask=list_admins(connection))
    if problem.code in OF_OWNERS and environment is not None:
        return replace(problem, ask=list_owners(connection, environment))
    return problem


def list_admins(connection: Connection) -> list[str]:
    query = select(users.c.name).where(users.c.is_admin, users.c.disabled_at.is_(None)).order_by(users.c.name)
    return list(connection.execute(query.limit(MOST_NAMES)).scalars())


def list_owners(connection: Connection, environment: Row[Any]) -> list[str]:
    """The users who may grant a role on an environment; of a team, its admins."""
    granted = select(roles.c.holder).where(roles.c.environment_id == environment.id, roles.c.role == "owner")
    holders = [environment.owner, *connection.execute(granted).scalars()]
    teams = select(namespaces.c.name).where(namespaces.c.name.in_(holders), namespaces.c.kind == "team")
    of_teams = set(connection.execute(teams).scalars())
    admins = select(members.c.user).where(members.c.team.in_(of_teams), members.c.role == "admin")
    found = [name for name in holders if name not in of_teams] + list(connection.execute(admins).scalars())
    return list(dict.fromkeys(found))[:MOST_NAMES]
