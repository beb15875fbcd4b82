"""`proctor models`: which models you can use by name, where, at what price, and whether their key is set.

Shows the names of variables that hold keys, never a value.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor import plugins
from proctor.api.ledger import ModelInfo
from proctor.cli.commands.shared_options import json_option
from proctor.cli.options import complete_parameter
from proctor.cli.views.escape import echo
from proctor.cli.views.page import print_table
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import adopt_context, current_context
from proctor.config.endpoint_choice import assume_offered, choose_endpoint
from proctor.config.endpoint_rule import RULE
from proctor.config.endpoints import EMBEDDED_CLIENTS
from proctor.config.prices import AS_OF
from proctor.config.providers import PROCTOR, list_providers
from proctor.config.registry import open_registry
from proctor.config.schema import DEFAULT_REGISTRY
from proctor.errors import ProctorError

if TYPE_CHECKING:
    from proctor.config.endpoint_choice import AskServer
    from proctor.config.endpoints import Endpoint
    from proctor.config.prices import Price
    from proctor.config.providers import Provider

LIMITS = {
    "max_concurrent": "{:g} at once",
    "requests_per_minute": "{:g} requests/min",
    "tokens_per_minute": "{:g} tokens/min",
}


class ListedKey(msgspec.Struct, frozen=True):
    """The variable a key is read from, and whether it is set."""

    variable: str
    is_set: bool
    is_needed: bool = True


class ListedPrice(msgspec.Struct, frozen=True):
    """Dollars per million tokens, and their source: the registry, or the list prices of AS_OF."""

    input: float
    output: float
    cached: float | None
    source: str


class ListedReplica(msgspec.Struct, frozen=True):
    """One of the places behind an alias; most aliases have one."""

    address: str
    key: ListedKey | None
    price: ListedPrice | None
    limits: dict[str, float]


class ListedEndpoint(msgspec.Struct, frozen=True):
    """An alias of the registry."""

    alias: str
    model: str
    client_type: str
    replicas: list[ListedReplica]


class ListedProvider(msgspec.Struct, frozen=True):
    """A built-in provider, for any model it serves."""

    name: str
    address: str
    client_type: str
    keys: list[ListedKey]


class DefaultModel(msgspec.Struct, frozen=True):
    """The model used without -m."""

    model: str
    address: str
    client_type: str
    why: str
    price: ListedPrice | None


class ListedServer(msgspec.Struct, frozen=True):
    """The server you are logged in to, and its models."""

    url: str
    models: list[ModelInfo]
    problem: str = ""
    """Why its models are not known."""


class ModelListing(msgspec.Struct, frozen=True):
    """Everything the command shows; `--json` prints it as it is."""

    registry: str | None
    endpoints: list[ListedEndpoint]
    providers: list[ListedProvider]
    embedded: list[str]
    without_a_name: DefaultModel
    prices_as_of: str
    server: ListedServer | None = None
    rule: tuple[tuple[str, str], ...] = RULE


@click.group("models")
def models_group() -> None:
    """Show which models you can use by name."""


@models_group.command("list")
@click.option(
    "-e",
    "--endpoints-path",
    default=DEFAULT_REGISTRY,
    metavar="PATH",
    show_default=True,
    shell_complete=complete_parameter,
    help="Endpoint registry, a TOML file.",
)
@json_option
def list_command(endpoints_path: str, as_json: bool) -> None:
    """List the endpoint registry's aliases, the models of the server you are logged in to, the built-in
    providers, the default model, and the rule by which an endpoint is chosen."""
    adopt_context(os.environ)
    listing = build_listing(endpoints_path, os.environ)
    if as_json:
        print_json(listing)
    else:
        show_listing(listing)


def build_listing(endpoints_path: str, environ: Mapping[str, str]) -> ModelListing:
    registry = open_registry(endpoints_path, plugins.list_names(plugins.MODELS))
    nobody = choose_endpoint(
        model=None,
        url=None,
        key_var=None,
        client_type=None,
        headers={},
        request_seconds=600.0,
        environ=environ,
        registry=registry,
        ask_server=find_ask_server(environ),
    )
    return ModelListing(
        registry=registry.path or None,
        endpoints=[list_endpoint(endpoint, environ) for endpoint in registry.endpoints.values()],
        providers=[list_provider(provider, environ) for provider in list_providers(environ)],
        embedded=sorted(EMBEDDED_CLIENTS),
        without_a_name=DefaultModel(
            nobody.model, nobody.address, nobody.client_type, nobody.why, find_listed_price(nobody)
        ),
        prices_as_of=AS_OF,
        server=list_server(environ),
    )


def find_ask_server(environ: Mapping[str, str]) -> AskServer:
    """Without a login, nothing that speaks HTTP is loaded."""
    if current_context(environ) is None:
        return assume_offered
    from proctor.client.ask_server import build_ask_server

    return build_ask_server(environ)


def list_server(environ: Mapping[str, str]) -> ListedServer | None:
    context = current_context(environ)
    if context is None:
        return None
    from proctor.client.connection import ServerError
    from proctor.client.models import list_server_models

    try:
        return ListedServer(context.url, list_server_models(context))
    except ServerError as error:
        return ListedServer(context.url, [], str(error))


def list_endpoint(endpoint: Endpoint, environ: Mapping[str, str]) -> ListedEndpoint:
    replicas = [
        ListedReplica(
            address=each.url,
            key=ListedKey(each.key_var, bool(environ.get(each.key_var))) if each.key_var else None,
            price=find_listed_price(each),
            limits={name: value for name in LIMITS if (value := getattr(each, name)) is not None},
        )
        for each in endpoint.replicas or (endpoint,)
    ]
    return ListedEndpoint(endpoint.alias, endpoint.model, endpoint.client_type, replicas)


def list_provider(provider: Provider, environ: Mapping[str, str]) -> ListedProvider:
    keys = [ListedKey(name, bool(environ.get(name)), provider.needs_key) for name in provider.key_vars]
    return ListedProvider(provider.name, provider.url, provider.client_type, keys)


def find_listed_price(endpoint: Endpoint) -> ListedPrice | None:
    price: Price | None = endpoint.tariff
    if price is None:
        return None
    return ListedPrice(price.input, price.output, price.cached, "registry" if endpoint.price else "list")


# For people


def show_listing(listing: ModelListing) -> None:
    if listing.registry:
        echo(f"Endpoints of {listing.registry}")
        columns = ("alias", "model", "address", "replica", "client", "in / out", "limits", "key")
        rows = [row for each in listing.endpoints for row in endpoint_rows(each)]
        print_table(columns, rows, nothing="  none", indent="  ")
    else:
        echo(f"No endpoint registry; write {DEFAULT_REGISTRY} or name a file with -e.")
    if listing.server is not None:
        show_server(listing.server)
    echo("\nProviders, for --provider")
    rows = [
        (each.name, each.address, each.client_type, format_provider_key(each)) for each in listing.providers
    ]
    print_table(("name", "address", "client", "key"), rows, indent="  ")
    default = listing.without_a_name
    echo(f"\nIn this process, without a key: {', '.join(listing.embedded)}")
    echo(f"Without -m: {default.model} ({default.address or default.client_type}), because {default.why}.")
    echo(f"Prices are dollars per million tokens; those with * are list prices of {listing.prices_as_of}.")
    echo("\nWhich endpoint answers: the first row that applies")
    show_rule(listing.rule)


def show_rule(rule: Sequence[tuple[str, str]]) -> None:
    """What you pass, and under it what is used; lines of a table would be cut on a narrow screen."""
    for given, rows in groupby(rule, key=lambda row: row[0]):
        echo(f"  {given}")
        for number, (_, used) in enumerate(rows):
            echo(f"    {'else ' if number else ''}{used}")


def show_server(server: ListedServer) -> None:
    echo(f"\nModels of {server.url}, where you are logged in")
    if server.problem:
        echo(f"  not known: {server.problem}")
        return
    rows = [(each.id, each.provider, format_server_price(each)) for each in server.models]
    print_table(("model", "provider", "in / out"), rows, nothing="  none", indent="  ")


def format_server_price(model: ModelInfo) -> str:
    if model.input_usd_per_million is None or model.output_usd_per_million is None:
        return "?"
    return f"{model.input_usd_per_million:g} / {model.output_usd_per_million:g}"


def endpoint_rows(each: ListedEndpoint) -> Iterator[tuple[str, ...]]:
    for number, replica in enumerate(each.replicas, 1):
        limits = ", ".join(LIMITS[name].format(value) for name, value in replica.limits.items())
        yield (
            each.alias,
            each.model,
            replica.address or "-",
            "" if len(each.replicas) == 1 else f"{number} of {len(each.replicas)}",
            each.client_type,
            format_price(replica.price),
            limits or "-",
            format_keys([replica.key] if replica.key else []),
        )


def format_price(price: ListedPrice | None) -> str:
    if price is None:
        return "?"
    return f"{price.input:g} / {price.output:g}{'*' if price.source == 'list' else ''}"


def format_provider_key(provider: ListedProvider) -> str:
    return "your login" if provider.name == PROCTOR else format_keys(provider.keys)


def format_keys(keys: Sequence[ListedKey]) -> str:
    """The variable that holds the key, or those it may be in."""
    if not keys:
        return "none needed"
    found = next((key.variable for key in keys if key.is_set), None)
    if found is not None:
        return f"{found} is set"
    variables = " or ".join(key.variable for key in keys)
    return f"{variables} is {'missing' if keys[0].is_needed else 'not set, nor needed'}"


def load_aliases(endpoints_path: str = DEFAULT_REGISTRY) -> Mapping[str, Any]:
    """The endpoints that -m may name, for shell completion; an invalid file yields none."""
    try:
        return open_registry(endpoints_path).endpoints
    except ProctorError:
        return {}
