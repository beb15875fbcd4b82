"""`proctor wallet`: your balance and usage on a server and, for admins, grants and prices."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

import click

from proctor.api.common import Page
from proctor.api.ledger import Balance, Entry, Grant, ModelInfo, ModelPrice, NewPrice, UsageTotal
from proctor.cli.commands.server_calls import call_server, print_change
from proctor.cli.commands.shared_options import FiniteRange, finite_float, json_option
from proctor.cli.views.escape import echo
from proctor.cli.views.formatting import format_dollars
from proctor.cli.views.page import TableColumn, print_table
from proctor.cli.views.stdout import print_json

if TYPE_CHECKING:
    from proctor.api.ledger import Balance, ModelInfo, UsageTotal
    from proctor.client.connection import ServerConnection

T = TypeVar("T")
DAY = 86_400.0

team_option = click.option("--team", metavar="NAME", help="Use the team's account instead of your own.")


@click.group("wallet", invoke_without_command=True)
@team_option
@json_option
@click.pass_context
def wallet_group(context: click.Context, team: str | None, as_json: bool) -> None:
    """Show your balance on the server and your usage.

    \b
    proctor wallet
    proctor wallet usage --days 7
    proctor wallet grant ada 25
    """
    if context.invoked_subcommand is not None:
        return

    show_balance(call_server(lambda server: server.get("/balance", Balance, owner=team)), as_json)


@wallet_group.command("usage")
@click.option("--run", metavar="ID", help="Only this run.")
@click.option("--days", type=FiniteRange(min=0), help="Only the last DAYS days.")
@team_option
@json_option
def usage_command(run: str | None, days: float | None, team: str | None, as_json: bool) -> None:
    """Show requests, tokens and cost by model."""
    since = None if days is None else time.time() - days * DAY
    page = call_server(
        lambda server: server.get("/usage", Page[UsageTotal], owner=team, run=run, since=since)
    )
    print_json(page.items) if as_json else show_usage(page.items)


@wallet_group.command("prices")
@json_option
def prices_command(as_json: bool) -> None:
    """List the models of the server and what they cost."""
    page = call_server(lambda server: server.get("/models", Page[ModelInfo]))
    print_json(page.items) if as_json else show_prices(page.items)


@wallet_group.command("price")
@click.argument("model")
@click.argument("input_usd", type=FiniteRange(min=0), metavar="INPUT")
@click.argument("output_usd", type=FiniteRange(min=0), metavar="OUTPUT")
@click.option("--cached", type=FiniteRange(min=0), help="Price of cached input.")
@json_option
def price_command(
    model: str, input_usd: float, output_usd: float, cached: float | None, as_json: bool
) -> None:
    """Set what a model costs here, in dollars per million tokens. For admins."""
    price = NewPrice(
        input_usd_per_million=input_usd, output_usd_per_million=output_usd, cached_usd_per_million=cached
    )
    saved = call_server(lambda server: server.put(f"/prices/{model}", price, ModelPrice))
    done = f"{model} costs {input_usd:g} / {output_usd:g} dollars per million tokens."
    above = saved.overridden_by
    if above is not None:
        registered = f"{above.input_usd_per_million:g} / {above.output_usd_per_million:g}"
        done = f"Saved, but without effect: {model} costs {registered} dollars per million tokens."
        echo(
            f"Warning: the server's endpoint registry has a price for {model}, which takes precedence; "
            f"its operator can change it there.",
            err=True,
        )
    print_change(saved, done, as_json)


@wallet_group.command("grant", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("usd", type=finite_float)
@click.option("--note", default="", help="A note to store with the grant.")
@json_option
def grant_command(name: str, usd: float, note: str, as_json: bool) -> None:
    """Add dollars to a user's or a team's account; a negative amount removes them. For admins."""

    async def work(server: ServerConnection) -> Balance:
        await server.post("/grants", Grant(owner=name, amount_usd=usd, note=note), Entry)
        return await server.get("/balance", Balance, owner=name)

    show_balance(call_server(work), as_json)


def show_balance(balance: Balance, as_json: bool) -> None:
    if as_json:
        print_json(balance)
        return
    spent = f"{format_dollars(balance.spent_usd)} spent so far"
    if balance.balance_usd is None:
        echo(f"{balance.owner}: no limit, {spent}.")
        return
    held = f", {format_dollars(balance.held_usd)} held for runs" if balance.held_usd else ""
    echo(f"{balance.owner}: {format_dollars(balance.available_usd)} available{held}, {spent}.")


def show_usage(usage: list[UsageTotal]) -> None:
    figures = ("requests", "input", "output", "cost")
    columns = [TableColumn("model"), *(TableColumn(name, right=True) for name in figures)]
    rows = [
        (
            each.model or "",
            f"{each.requests:,}",
            f"{each.input_tokens:,}",
            f"{each.output_tokens:,}",
            format_dollars(each.cost_usd),
        )
        for each in usage
    ]
    print_table(columns, rows, nothing="No requests.")


def show_prices(models: list[ModelInfo]) -> None:
    columns = (
        "model",
        "provider",
        TableColumn("$/M input", right=True),
        TableColumn("$/M output", right=True),
    )
    rows = [
        (
            each.id,
            each.provider,
            format_unit_price(each.input_usd_per_million),
            format_unit_price(each.output_usd_per_million),
        )
        for each in models
    ]
    nothing = "The server has no models; its operator can set a provider's key or name an endpoint registry."
    print_table(columns, rows, nothing=nothing)


def format_unit_price(price: float | None) -> str:
    return "?" if price is None else f"{price:g}"
