"""`proctor context`: the servers you are logged in to, and which one is current.

Shows no token.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from proctor.api.common import Page
from proctor.api.people import Member
from proctor.cli.commands.server_calls import api_path, call_server, print_change
from proctor.cli.commands.shared_options import json_option
from proctor.cli.views.escape import echo
from proctor.cli.views.page import print_table
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import (
    CONTEXT_VARIABLE,
    NOT_LOGGED_IN,
    contexts_file,
    need_context,
    read_contexts,
    write_contexts,
)
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.client.contexts import Context


@click.group("context", invoke_without_command=True)
@click.pass_context
def context_group(ctx: click.Context) -> None:
    """List the servers you are logged in to, and choose one."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@context_group.command("list")
@json_option
def list_command(as_json: bool = False) -> None:
    """List all logins; a star marks the one in use."""
    known = read_contexts(os.environ)
    current = os.environ.get(CONTEXT_VARIABLE) or known.current
    if as_json:
        print_json([describe_context(name, context, current) for name, context in known.contexts.items()])
        return
    rows = [
        ["*" if name == current else "", name, context.team or "–", context.url]
        for name, context in known.contexts.items()
    ]
    print_table(("", "name", "team", "server"), rows, "No login yet; log in with: proctor login URL")


@context_group.command("show")
@click.argument("name", required=False)
@json_option
def show_command(name: str | None, as_json: bool) -> None:
    """Show one login, or the one in use."""
    known = read_contexts(os.environ)
    current = os.environ.get(CONTEXT_VARIABLE) or known.current
    context = known.find(name) if name else need_context(os.environ)
    shown = describe_context(name or current or "", context, current)
    if as_json:
        print_json(shown)
        return
    kept = contexts_file(os.environ) if known.contexts.get(name or current or "") == context else "variables"
    for label, value in (*shown.items(), ("kept in", kept)):
        echo(f"{label:10}{'–' if value is None else value}")


def describe_context(name: str, context: Context, current: str | None) -> dict[str, Any]:
    return {"name": name, "url": context.url, "team": context.team, "in_use": name == current}


@context_group.command("use")
@click.argument("name")
@json_option
def use_command(name: str, as_json: bool) -> None:
    """Use the login NAME from now on."""
    known = read_contexts(os.environ).using(name)
    write_contexts(os.environ, known)
    context = known.contexts[name]
    print_change(describe_context(name, context, name), f"Now using {name}: {context.url}", as_json)


@context_group.command("delete")
@click.argument("name")
@json_option
def delete_command(name: str, as_json: bool) -> None:
    """Forget the login NAME without revoking its token; `proctor logout` also revokes it."""
    write_contexts(os.environ, read_contexts(os.environ).without(name))
    print_change({"name": name}, f"{name} is forgotten.", as_json)


@context_group.command("team")
@click.argument("team", required=False)
@click.option("--personal", is_flag=True, help="Run and push for yourself again.")
@json_option
def team_command(team: str | None, personal: bool, as_json: bool) -> None:
    """Run and push for TEAM from now on, unless you name another."""
    if (team is None) != personal:
        raise ConfigError("Give the name of a team, or --personal.")
    known = read_contexts(os.environ)
    name = os.environ.get(CONTEXT_VARIABLE) or known.current
    if name is None:
        raise ConfigError(NOT_LOGGED_IN)
    context = known.find(name)
    if team is not None:
        call_server(lambda server: server.get(api_path("teams", team, "members"), Page[Member]), context)
    context = replace(context, team=team)
    write_contexts(os.environ, replace(known, contexts={**known.contexts, name: context}))
    print_change(
        describe_context(name, context, name), f"Runs and pushes are for {team or 'yourself'} now.", as_json
    )
