"""Balances, grants, use, prices and estimates over HTTP."""

from __future__ import annotations

import math
import secrets
from pathlib import Path
from typing import Any

import msgspec
from litestar import Router, delete, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.status_codes import HTTP_200_OK
from msgspec.structs import replace
from sqlalchemy import Connection

from proctor.api.common import Page
from proctor.api.ledger import (
    Balance,
    Entry,
    Grant,
    ModelPrice,
    NewPrice,
    UsageGroup,
    UsagePeriod,
    UsageTotal,
)
from proctor.api.runs import Estimate, NewRun
from proctor.config.prices import Price
from proctor.server.audit.changes import AuditDependency
from proctor.server.gateway.models import Models
from proctor.server.hub.records import resolve_version
from proctor.server.ledger import price_overrides, records
from proctor.server.ledger.estimate import build_estimate
from proctor.server.ledger.past_rollouts import PlannedRun
from proctor.server.ledger.usage import UsageFilter, cursor_of, sum_usage
from proctor.server.names import LINES, check_text
from proctor.server.paging import build_page, check_limit, decode_cursor
from proctor.server.people.records import list_admins, need_team
from proctor.server.people.tokens import Caller
from proctor.server.problems import InvalidError
from proctor.server.requests import (
    CallerDependency,
    HttpRequest,
    PlatformDependency,
    check_tables,
    run_idempotent,
)
from proctor.server.runs import submission
from proctor.server.runs.records import need_visible_run
from proctor.server.runs.streams import name_reader

LONGEST_NOTE = 2_000
MOST_ADMINS = 5


def resolve_owner(connection: Connection, caller: Caller, owner: str | None) -> str:
    """The account that is meant: your own, a team's for its members, any for an admin."""
    if owner is None or owner == caller.user:
        return caller.user
    if not caller.is_admin:
        need_team(connection, caller, owner)
    return owner


@get("/balance", summary="The balance, holds and spending of an account")
async def read_balance(
    caller: CallerDependency, platform: PlatformDependency, owner: FromQuery[str | None] = None
) -> Balance:
    caller.need("runs:read")

    def work(connection: Connection) -> Balance:
        balance = records.balance_of(connection, resolve_owner(connection, caller, owner))
        return replace(balance, granted_by=list_admins(connection, MOST_ADMINS))

    return await platform.database.read(work)


@get("/entries", summary="The movements of an account, newest first")
async def list_entries(
    caller: CallerDependency,
    platform: PlatformDependency,
    owner: FromQuery[str | None] = None,
    cursor: FromQuery[str | None] = None,
    limit: FromQuery[int] = 100,
) -> Page[Entry]:
    caller.need("runs:read")
    position = decode_cursor(cursor, float, str)
    after = None if position is None else (position[0], position[1])

    def work(connection: Connection) -> list[Entry]:
        whose = resolve_owner(connection, caller, owner)
        return records.list_entries(connection, whose, after, check_limit(limit))

    found = await platform.database.read(work)
    return build_page(found, limit, lambda entry: (entry.at, entry.id))


@post("/grants", summary="Add to an account, or take from it")
async def grant(
    request: HttpRequest,
    data: JSONBody[Grant],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> Entry:
    caller.need_admin()
    if not math.isfinite(data.amount_usd) or not records.millionths(data.amount_usd):
        raise InvalidError("amount_usd must not be 0.", field="amount_usd")
    check_text(data.note, "note", longest=LONGEST_NOTE, allowed=LINES)
    amount, reference = records.millionths(data.amount_usd), f"grant:{secrets.token_hex(10)}"

    def work(connection: Connection) -> Entry:
        return records.grant(connection, data.owner, amount, data.note, reference)

    granted = audit.of(caller, "balance.grant", data.owner, work, {"amount_usd": data.amount_usd})
    entry = await run_idempotent(request, platform, caller, granted, Entry)
    platform.meter.forget()
    return entry


@get("/balances", summary="The balances of all users and teams, by name; for admins")
async def list_balances(
    caller: CallerDependency,
    platform: PlatformDependency,
    cursor: FromQuery[str | None] = None,
    limit: FromQuery[int] = 100,
) -> Page[Balance]:
    caller.need_admin()
    position = decode_cursor(cursor, str)
    after = None if position is None else position[0]
    found = await platform.database.read(records.list_balances, after, check_limit(limit))
    return build_page(found, limit, lambda balance: (balance.owner,))


@get("/usage", summary="Requests, tokens and cost by model, run or user, of an account or of one run")
async def list_usage(
    caller: CallerDependency,
    platform: PlatformDependency,
    owner: FromQuery[str | None] = None,
    run: FromQuery[str | None] = None,
    since: FromQuery[float | None] = None,
    group: FromQuery[UsageGroup] = "model",
    by: FromQuery[UsagePeriod | None] = None,
    cursor: FromQuery[str | None] = None,
    limit: FromQuery[int] = 1000,
) -> Page[UsageTotal]:
    """With `by=day`, one line for each day, the newest first."""
    caller.need("runs:read")
    position = decode_cursor(cursor, int, str)
    after = None if position is None else (position[0], position[1])

    def work(connection: Connection) -> list[UsageTotal]:
        wanted = UsageFilter(run_id=run, since=since, group=group, by=by)
        if run is not None:
            need_visible_run(connection, caller, run)
        else:
            wanted = replace(wanted, owner=resolve_owner(connection, caller, owner))
        return sum_usage(connection, wanted, after, check_limit(limit))

    return build_page(await platform.database.read(work), limit, cursor_of)


# Prices


@get("/prices", summary="Prices that override the list prices")
async def list_prices(caller: CallerDependency, platform: PlatformDependency) -> Page[ModelPrice]:
    caller.need("inference")
    found = await platform.database.read(price_overrides.load_prices)
    return Page([describe_price(model, price, platform.models) for model, price in found.items()])


@put("/prices/{model:path}", summary="Set the price of a model")
async def put_price(
    model: FromPath[Path],
    data: JSONBody[NewPrice],
    caller: CallerDependency,
    platform: PlatformDependency,
    audit: AuditDependency,
) -> ModelPrice:
    caller.need_admin()
    name = parse_model_name(model)

    def work(connection: Connection) -> dict[str, Price]:
        price_overrides.put_price(connection, name, data)
        return price_overrides.load_prices(connection)

    details = msgspec.to_builtins(data)
    found = await platform.database.write(audit.of(caller, "price.set", name, work, details))
    platform.models.reprice(found)
    return describe_price(name, found[name], platform.models)


@delete("/prices/{model:path}", summary="Go back to the list price")
async def remove_price(
    model: FromPath[Path], caller: CallerDependency, platform: PlatformDependency, audit: AuditDependency
) -> None:
    caller.need_admin()
    name = parse_model_name(model)

    def work(connection: Connection) -> dict[str, Price]:
        price_overrides.remove_price(connection, name)
        return price_overrides.load_prices(connection)

    platform.models.reprice(await platform.database.write(audit.of(caller, "price.remove", name, work)))


def parse_model_name(model: Path) -> str:
    return str(model).lstrip("/")


def describe_price(model: str, price: Price, models: Models) -> ModelPrice:
    above = models.registry_price(model)
    overridden_by = None if above is None else NewPrice(**price_fields(above))
    return ModelPrice(model=model, overridden_by=overridden_by, **price_fields(price))


def price_fields(price: Price) -> dict[str, Any]:
    figures = {"input": price.input, "output": price.output, "cached": price.cached}
    return {f"{name}_usd_per_million": figure for name, figure in figures.items()}


# Estimates


@post("/runs/estimate", summary="What a run may take and show, before it starts", status_code=HTTP_200_OK)
async def estimate_run(
    data: JSONBody[NewRun], caller: CallerDependency, platform: PlatformDependency
) -> Estimate:
    caller.need("runs:read")
    check_tables(data)
    data, route = platform.models.resolve_for_agent(submission.check_new_run(data))

    def work(connection: Connection) -> Estimate:
        environment, version = resolve_version(connection, caller, data.environment)
        planned = PlannedRun(
            environment_id=environment.id,
            version_id=version.id,
            model=route.name,
            price=None if data.settings.get("api_base_url") else route.price,
            settings=data.settings,
            payer=resolve_owner(connection, caller, data.team),
            reader=caller,
        )
        return build_estimate(connection, planned)

    async with platform.reads.turn(name_reader(caller)):
        return await platform.database.read(work)


router = Router(
    "",
    route_handlers=[
        read_balance,
        list_entries,
        grant,
        list_usage,
        list_balances,
        list_prices,
        put_price,
        remove_price,
        estimate_run,
    ],
    tags=["ledger"],
)
