"""`proctor wallet`: what one has on a server, what was used, and for admins: grants and prices."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from proctor.api.common import Page
from proctor.api.ledger import Balance, Entry, Grant, ModelInfo, ModelPrice, ModelUse, NewPrice
from proctor.cli.commands.models import format_columns
from proctor.cli.views.escape import echo, echo_encoded
from proctor.client.contexts import need_context

if TYPE_CHECKING:
    from proctor.api.ledger import Balance, ModelInfo, ModelUse
    from proctor.client.connection import ServerConnection

T = TypeVar("T")
DAY = 86_400.0

team_option = click.option("--team", metavar="NAME", help="The account of a team, instead of one's own.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("wallet", invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@team_option
@json_option
@click.pass_context
def wallet_group(context: click.Context, team: str | None, as_json: bool) -> None:
    """Show what one has to spend on the server, and what was used.

    \b
    proctor wallet
    proctor wallet usage --days 7
    proctor wallet grant ada 25
    """
    if context.invoked_subcommand is not None:
        return

    told = call_server(lambda server: server.get("/balance", Balance, owner=team))
    show_answer(told, as_json, balance_lines)


@wallet_group.command("usage")
@click.option("--run", metavar="ID", help="Of one run only.")
@click.option("--days", type=click.FloatRange(min=0), help="Of the last days only.")
@team_option
@json_option
def usage_command(run: str | None, days: float | None, team: str | None, as_json: bool) -> None:
    """Show requests, tokens and cost by model."""
    since = None if days is None else time.time() - days * DAY
    page = call_server(lambda server: server.get("/usage", Page[ModelUse], owner=team, run=run, since=since))
    show_answer(page.items, as_json, usage_lines)


@wallet_group.command("prices")
@json_option
def prices_command(as_json: bool) -> None:
    """List the models of the server and what they cost."""
    page = call_server(lambda server: server.get("/models", Page[ModelInfo]))
    show_answer(page.items, as_json, price_lines)


@wallet_group.command("price")
@click.argument("model")
@click.argument("input_usd", type=click.FloatRange(min=0), metavar="INPUT")
@click.argument("output_usd", type=click.FloatRange(min=0), metavar="OUTPUT")
@click.option("--cached", type=click.FloatRange(min=0), help="Of input that the provider still remembers.")
@json_option
def price_command(
    model: str, input_usd: float, output_usd: float, cached: float | None, as_json: bool
) -> None:
    """Set what a model costs here, in dollars per million tokens. For admins."""
    price = NewPrice(
        input_usd_per_million=input_usd, output_usd_per_million=output_usd, cached_usd_per_million=cached
    )
    told = call_server(lambda server: server.put(f"/prices/{model}", price, ModelPrice))
    show_answer(
        told, as_json, lambda _: [f"{model} costs {input_usd:g} / {output_usd:g} dollars per million tokens."]
    )


@wallet_group.command("grant", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("usd", type=float)
@click.option("--note", default="", help="What it is for.")
@json_option
def grant_command(name: str, usd: float, note: str, as_json: bool) -> None:
    """Add dollars to a user's or a team's account; a negative sum takes them. For admins."""

    async def work(server: ServerConnection) -> Balance:
        await server.post("/grants", Grant(owner=name, amount_usd=usd, note=note), Entry)
        return await server.get("/balance", Balance, owner=name)

    show_answer(call_server(work), as_json, balance_lines)


def call_server(work: Callable[[ServerConnection], Awaitable[T]]) -> T:
    """The answer of the server one is logged in to."""
    from proctor.client.connection import ServerConnection

    async def ask() -> T:
        async with ServerConnection(need_context(os.environ)) as server:
            return await work(server)

    return asyncio.run(ask())


def show_answer(told: T, as_json: bool, lines: Callable[[T], list[str]]) -> None:
    if as_json:
        echo_encoded(msgspec.json.format(msgspec.json.encode(told)))
    else:
        echo("\n".join(lines(told)))


def balance_lines(told: Balance) -> list[str]:
    if told.balance_usd is None:
        return [f"{told.owner}: no limit, {format_dollars(told.spent_usd)} spent so far."]
    held = f", {format_dollars(told.held_usd)} held for runs" if told.held_usd else ""
    spent = format_dollars(told.spent_usd)
    return [f"{told.owner}: {format_dollars(told.available_usd)} to spend{held}, {spent} spent so far."]


def usage_lines(told: list[ModelUse]) -> list[str]:
    if not told:
        return ["Nothing was asked."]
    rows: list[tuple[Any, ...]] = [
        (
            each.model,
            each.requests,
            f"{each.input_tokens:,}",
            f"{each.output_tokens:,}",
            format_dollars(each.cost_usd),
        )
        for each in told
    ]
    return format_table(("model", "requests", "input", "output", "cost"), rows)


def price_lines(told: list[ModelInfo]) -> list[str]:
    if not told:
        return ["The server has no model; its operator sets a provider's key or names a registry."]
    rows = [
        (
            each.id,
            each.provider,
            format_unit_price(each.input_usd_per_million),
            format_unit_price(each.output_usd_per_million),
        )
        for each in told
    ]
    return format_table(("model", "provider", "$/M input", "$/M output"), rows)


def format_table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    return list(format_columns(head, [[str(cell) for cell in row] for row in rows]))


def format_dollars(usd: float | None) -> str:
    """Dollars, as exactly as small sums need it."""
    if usd is None:
        return "?"
    return f"${usd:.2f}" if usd == 0 or abs(usd) >= 1 else f"${usd:.4g}"


def format_unit_price(price: float | None) -> str:
    return "?" if price is None else f"{price:g}"
