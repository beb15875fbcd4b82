"""`proctor secret` and `proctor var`: what hosted runs find in their environment.

A secret's value is never an argument; a variable's may be, since it is not secret.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from proctor.api.common import Page
from proctor.api.people import Whoami
from proctor.api.secrets import (
    NewSecret,
    NewVariable,
    Secret,
    SecretChange,
    VariableChange,
    problem_with_name,
)
from proctor.cli.commands.server_calls import (
    api_path,
    call_server,
    environment_path,
    print_change,
)
from proctor.cli.commands.shared_options import confirm, json_option, yes_option
from proctor.cli.hidden import read_hidden
from proctor.cli.views.formatting import format_day
from proctor.cli.views.page import TableColumn, print_table
from proctor.cli.views.stdout import print_json
from proctor.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from proctor.api.secrets import Secret
    from proctor.client.connection import ServerConnection

env_option = click.option("--env", "environment", metavar="OWNER/NAME", help="Of one environment.")
team_option = click.option("--team", metavar="NAME", help="Use the team's secrets instead of your own.")
needed_env_option = click.option(
    "--env", "environment", metavar="OWNER/NAME", required=True, help="The environment."
)


@click.group("secret")
def secret_group() -> None:
    """Keep secrets on a server, for hosted runs; their values can be set, but never read."""


@secret_group.command("list")
@env_option
@json_option
def list_secrets(environment: str | None, as_json: bool) -> None:
    """List global secrets, or those that runs of one environment are given."""
    found = call_server(lambda server: list_secrets_at(server, secrets_path(environment)))
    if as_json:
        print_json(found)
        return
    rows = [
        [
            each.name,
            each.kind if each.is_active else f"{each.kind}, inactive",
            each.owner or each.environment or "",
            ", ".join(each.linked_to) or "–",
            format_day(each.updated_at),
            each.description or "–",
        ]
        for each in found
    ]
    todo = "No secrets; store one with: proctor secret set NAME"
    print_table(
        (
            "name",
            "kind",
            "of",
            TableColumn("linked to", may_shrink=True),
            "changed",
            TableColumn("description", may_shrink=True),
        ),
        rows,
        todo,
    )


@secret_group.command("set")
@click.argument("name")
@env_option
@team_option
@click.option("--from-file", "file", metavar="FILE", help="Read the value from a file; - is stdin.")
@click.option("--from-env", "variable", metavar="VAR", help="Take the value of a variable.")
@click.option("--description", help="A note to store with the secret.")
@json_option
def set_secret(
    name: str,
    environment: str | None,
    team: str | None,
    file: str | None,
    variable: str | None,
    description: str | None,
    as_json: bool,
) -> None:
    """Store the secret NAME or replace its value. The value is prompted for, or read from stdin.

    \b
    proctor secret set SEARCH_KEY
    proctor secret set SEARCH_KEY --env ada/maze --from-env SEARCH_KEY
    """
    check_owner(environment, team)
    check_name(name)
    value = read_hidden(f"value of {name}", file=file, variable=variable, environ=os.environ)
    path = secrets_path(environment)

    async def keep(server: ServerConnection) -> tuple[Secret, bool]:
        known = await find_secret(server, path, name, environment, team)
        if known is not None:
            if known.kind == "linked":
                raise ConfigError(
                    f"{name} is linked to {environment}, and set once for all: leave out --env, or unlink it."
                )
            change = SecretChange(value=value, description=description)
            return await server.patch(path + api_path(known.id), change, Secret), False
        new = NewSecret(name=name, value=value, description=description or "", team=team)
        return await server.post(path, new, Secret), True

    kept, is_new = call_server(keep)
    print_change(kept, f"{name} is {'kept' if is_new else 'changed'}, for {owner_of_secret(kept)}.", as_json)


@secret_group.command("delete")
@click.argument("name")
@env_option
@team_option
@yes_option
@json_option
def delete_secret(name: str, environment: str | None, team: str | None, yes: bool, as_json: bool) -> None:
    """Delete the secret NAME, and its links."""
    check_owner(environment, team)
    path = secrets_path(environment)
    if not confirm(f"Delete {name}?", yes):
        return

    async def remove(server: ServerConnection) -> Secret:
        known = require_secret(
            await find_secret(server, path, name, environment, team), name, environment, team
        )
        if known.kind == "linked":
            raise ConfigError(f"{name} is linked to {environment}; use: proctor secret unlink")
        await server.delete(path + api_path(known.id))
        return known

    print_change(call_server(remove), f"{name} is deleted.", as_json)


@secret_group.command("link")
@click.argument("name")
@needed_env_option
@team_option
@json_option
def link_secret(name: str, environment: str, team: str | None, as_json: bool) -> None:
    """Give the global secret NAME to runs of an environment, if started by people who may change it."""

    async def make(server: ServerConnection) -> Secret:
        secret = require_secret(await find_secret(server, "/secrets", name, None, team), name, None, team)
        return await server.put(environment_path(environment, "secrets", "links", secret.id), {}, Secret)

    print_change(call_server(make), f"{name} is linked to {environment}.", as_json)


@secret_group.command("unlink")
@click.argument("name")
@needed_env_option
@json_option
def unlink_secret(name: str, environment: str, as_json: bool) -> None:
    """No longer give runs of an environment the global secret NAME."""
    path = environment_path(environment, "secrets")

    async def remove(server: ServerConnection) -> Secret:
        own = await list_secrets_at(server, secrets_path(None))
        secret = next((each for each in own if each.name == name and environment in each.linked_to), None)
        linked: list[Secret] = []
        if secret is None:  # another user's, visible only to users who may change the environment
            linked = [each for each in await list_secrets_at(server, path) if each.kind == "linked"]
            secret = next((each for each in linked if each.name == name), None)
        if secret is None:
            raise ConfigError(f"No secret {name} is linked to {environment}{suggest_secret(name, linked)}")
        await server.delete(path + api_path("links", secret.id))
        return secret

    print_change(call_server(remove), f"{name} is no longer linked to {environment}.", as_json)


@click.group("var")
def var_group() -> None:
    """Set variables for hosted runs of an environment; anyone who may read it can read them."""


@var_group.command("list")
@needed_env_option
@json_option
def list_variables(environment: str, as_json: bool) -> None:
    """List the variables of an environment."""
    found = call_server(lambda server: list_secrets_at(server, environment_path(environment, "variables")))
    if as_json:
        print_json(found)
        return
    rows = [[each.name, each.value or ""] for each in found]
    print_table(("name", TableColumn("value", may_shrink=True)), rows, f"{environment} has no variables.")


@var_group.command("set")
@click.argument("pairs", nargs=-1, required=True, metavar="NAME=VALUE…")
@needed_env_option
@json_option
def set_variables(pairs: tuple[str, ...], environment: str, as_json: bool) -> None:
    """Set variables of an environment.

    \b
    proctor var set DIFFICULTY=hard ROOMS=12 --env ada/maze
    """
    path = environment_path(environment, "variables")
    values: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise ConfigError(f"{pair!r} sets nothing; write NAME=VALUE.")
        check_name(name)
        values[name] = value

    async def keep(server: ServerConnection) -> list[Secret]:
        known = {each.name: each for each in await list_secrets_at(server, path)}
        for name, value in values.items():
            if name in known:
                await server.patch(path + api_path(known[name].id), VariableChange(value=value), Secret)
            else:
                await server.post(path, NewVariable(name=name, value=value), Secret)
        return await list_secrets_at(server, path)

    are = "is" if len(values) == 1 else "are"
    print_change(call_server(keep), f"{', '.join(values)} {are} set for {environment}.", as_json)


@var_group.command("delete")
@click.argument("name")
@needed_env_option
@json_option
def delete_variable(name: str, environment: str, as_json: bool) -> None:
    """Delete the variable NAME of an environment."""
    path = environment_path(environment, "variables")

    async def remove(server: ServerConnection) -> Secret:
        known = await list_secrets_at(server, path)
        variable = next((each for each in known if each.name == name), None)
        if variable is None:
            raise ConfigError(f"{environment} has no variable {name}{suggest_secret(name, known)}")
        await server.delete(path + api_path(variable.id))
        return variable

    print_change(call_server(remove), f"{name} is deleted.", as_json)


# Finding one by its name


def secrets_path(environment: str | None) -> str:
    return "/secrets" if environment is None else environment_path(environment, "secrets")


async def list_secrets_at(server: ServerConnection, path: str) -> list[Secret]:
    return (await server.get(path, Page[Secret])).items


async def find_secret(
    server: ServerConnection, path: str, name: str, environment: str | None, team: str | None
) -> Secret | None:
    """Find the secret by name: the environment's, the team's, or your own."""
    named = [each for each in await list_secrets_at(server, path) if each.name == name]
    if environment is None and named:
        owner = team or (await server.get("/whoami", Whoami)).user.name
        named = [each for each in named if each.owner == owner]
    return named[0] if named else None


def require_secret(secret: Secret | None, name: str, environment: str | None, team: str | None) -> Secret:
    if secret is None:
        owner = environment or team
        raise ConfigError(f"{f'{owner} has' if owner else 'You have'} no secret {name}.")
    return secret


def suggest_secret(name: str, known: Iterable[Secret]) -> str:
    names = [each.name for each in known]
    return did_you_mean(name, names) if names else "; there is none."


def check_owner(environment: str | None, team: str | None) -> None:
    if environment is not None and team is not None:
        raise ConfigError("--env and --team both name the secret's owner; pass only one.")


def check_name(name: str) -> None:
    if problem := problem_with_name(name):
        raise ConfigError(problem)


def owner_of_secret(secret: Secret) -> str:
    return secret.environment or secret.owner or ""
