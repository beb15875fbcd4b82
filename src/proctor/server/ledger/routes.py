"""Balances, grants, use, prices and estimates over HTTP."""

from __future__ import annotations

import math
import secrets
from pathlib import Path

from litestar import Router, delete, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.status_codes import HTTP_200_OK
from sqlalchemy import Connection

from proctor.api.common import Page
from proctor.api.ledger import Balance, Entry, Grant, NewPrice, SetPrice, Usage
from proctor.api.runs import Estimate, NewRun
from proctor.config.prices import Price
from proctor.server.hub.records import resolve
from proctor.server.ledger import calls, prices, records
from proctor.server.ledger.estimate import Planned, estimate
from proctor.server.names import LINES, check_text
from proctor.server.paging import limited, page_of, place_of
from proctor.server.people.records import need_team
from proctor.server.people.tokens import Caller
from proctor.server.problems import InvalidError
from proctor.server.requests import Asked, By, Here, check_tables, create
from proctor.server.runs import submission
from proctor.server.runs.records import need

LONGEST_NOTE = 2_000


def owner_for(connection: Connection, caller: Caller, owner: str | None) -> str:
    """Whose account is meant: one's own, a team's for its members, anybody's for an admin."""
    if owner is None or owner == caller.user:
        return caller.user
    if not caller.is_admin:
        need_team(connection, caller, owner)
    return owner


@get("/balance", summary="What an account has, what is held of it, what it has spent")
async def balance(caller: By, platform: Here, owner: FromQuery[str | None] = None) -> Balance:
    caller.need("runs:read")

    def work(connection: Connection) -> Balance:
        return records.balance_of(connection, owner_for(connection, caller, owner))

    return await platform.database.read(work)


@get("/entries", summary="What moved an account, the newest first")
async def list_entries(
    caller: By,
    platform: Here,
    owner: FromQuery[str | None] = None,
    cursor: FromQuery[str | None] = None,
    limit: FromQuery[int] = 100,
) -> Page[Entry]:
    caller.need("runs:read")
    place = place_of(cursor, float, str)
    after = None if place is None else (place[0], place[1])

    def work(connection: Connection) -> list[Entry]:
        whose = owner_for(connection, caller, owner)
        return records.list_entries(connection, whose, after, limited(limit))

    found = await platform.database.read(work)
    return page_of(found, limit, lambda entry: (entry.at, entry.id))


@post("/grants", summary="Add to an account, or take from it")
async def grant(request: Asked, data: JSONBody[Grant], caller: By, platform: Here) -> Entry:
    caller.need_admin()
    if not math.isfinite(data.amount_usd) or not records.millionths(data.amount_usd):
        raise InvalidError("amount_usd must be a sum other than 0.", field="amount_usd")
    check_text(data.note, "note", longest=LONGEST_NOTE, allowed=LINES)
    amount, reference = records.millionths(data.amount_usd), f"grant:{secrets.token_hex(10)}"
    entry = await create(
        request,
        platform,
        caller,
        lambda connection: records.grant(connection, data.owner, amount, data.note, reference),
        Entry,
    )
    platform.meter.forget()
    return entry


@get("/usage", summary="Requests, tokens and cost by model, of an account or of one run")
async def usage(
    caller: By,
    platform: Here,
    owner: FromQuery[str | None] = None,
    run: FromQuery[str | None] = None,
    since: FromQuery[float | None] = None,
) -> Page[Usage]:
    caller.need("runs:read")

    def work(connection: Connection) -> list[Usage]:
        if run is not None:
            need(connection, caller, run)
            return calls.use_by_model(connection, run_id=run, since=since)
        return calls.use_by_model(connection, owner=owner_for(connection, caller, owner), since=since)

    return Page(await platform.database.read(work))


# Prices


@get("/prices", summary="Prices that stand instead of the list's")
async def list_prices(caller: By, platform: Here) -> Page[SetPrice]:
    caller.need("inference")
    found = await platform.database.read(prices.set_prices)
    return Page([told(model, price) for model, price in found.items()])


@put("/prices/{model:path}", summary="Set what a model costs here")
async def put_price(model: FromPath[Path], data: JSONBody[NewPrice], caller: By, platform: Here) -> SetPrice:
    caller.need_admin()
    name = name_in(model)

    def work(connection: Connection) -> dict[str, Price]:
        prices.put_price(connection, name, data)
        return prices.set_prices(connection)

    found = await platform.database.write(work)
    platform.models.reprice(found)
    return told(name, found[name])


@delete("/prices/{model:path}", summary="Go back to the list price")
async def remove_price(model: FromPath[Path], caller: By, platform: Here) -> None:
    caller.need_admin()

    def work(connection: Connection) -> dict[str, Price]:
        prices.remove_price(connection, name_in(model))
        return prices.set_prices(connection)

    platform.models.reprice(await platform.database.write(work))


def name_in(model: Path) -> str:
    return str(model).lstrip("/")


def told(model: str, price: Price) -> SetPrice:
    return SetPrice(
        model=model,
        input_usd_per_million=price.input,
        output_usd_per_million=price.output,
        cached_usd_per_million=price.cached,
    )


# Estimates


@post("/runs/estimate", summary="What a run may cost, before it starts", status_code=HTTP_200_OK)
async def estimate_run(data: JSONBody[NewRun], caller: By, platform: Here) -> Estimate:
    caller.need("runs:read")
    check_tables(data)
    submission.check(data)
    route = platform.models.resolve(data.model)

    def work(connection: Connection) -> Estimate:
        environment, version = resolve(connection, caller, data.environment)
        planned = Planned(
            environment_id=environment.id,
            version_id=version.id,
            model=route.name,
            price=None if data.settings.get("api_base_url") else route.price,
            settings=data.settings,
            payer=owner_for(connection, caller, data.team),
            reader=caller,
        )
        return estimate(connection, planned)

    return await platform.database.read(work)


router = Router(
    "",
    route_handlers=[
        balance,
        list_entries,
        grant,
        usage,
        list_prices,
        put_price,
        remove_price,
        estimate_run,
    ],
    tags=["ledger"],
)
