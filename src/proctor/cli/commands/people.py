"""`proctor user`, `team` and `token`: a server's users, their teams and their tokens."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TextIO

import click

from proctor.api.common import Page
from proctor.api.people import (
    SCOPES,
    Member,
    Membership,
    NewTeam,
    NewToken,
    NewUser,
    Team,
    Token,
    TokenWithSecret,
    User,
    UserWithToken,
)
from proctor.api.runner import HostToken, NewHost
from proctor.cli.commands.server_calls import api_path, call_server, describe_expiry, print_change
from proctor.cli.commands.shared_options import FiniteRange, confirm, json_option, yes_option
from proctor.cli.hidden import create_private_file
from proctor.cli.views.escape import echo
from proctor.cli.views.formatting import format_day
from proctor.cli.views.page import TableColumn, print_table
from proctor.cli.views.stdout import print_json
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.api.people import Scope, User

DAYS = 90.0


@click.group("user")
def user_group() -> None:
    """Add, list and disable users of a server; for its admins."""


@user_group.command("add")
@click.argument("name")
@click.option("--admin", is_flag=True, help="Make them an admin of the server.")
@json_option
def add_user(name: str, admin: bool, as_json: bool) -> None:
    """Add the user NAME, and print a token for them to log in with."""
    made = call_server(
        lambda server: server.post("/users", NewUser(name=name, is_admin=admin), UserWithToken)
    )
    if as_json:
        print_json(made)
        return
    echo(f"{name} was added. This login token is shown only once:", err=True)
    echo(made.token)


@user_group.command("list")
@json_option
def list_users(as_json: bool) -> None:
    """List all users."""
    users = call_server(lambda server: server.get("/users", Page[User])).items
    if as_json:
        print_json(users)
        return
    rows = [
        [
            user.name,
            "disabled" if user.disabled else "admin" if user.is_admin else "user",
            format_day(user.created_at),
        ]
        for user in users
    ]
    print_table(("name", "may be", "since"), rows, "There are no users.")


@user_group.command("disable")
@click.argument("name")
@yes_option
@json_option
def disable_user(name: str, yes: bool, as_json: bool) -> None:
    """Disable the user NAME: refuse all their requests at once, until they are enabled again."""
    if confirm(f"Disable {name}?", yes):
        print_change(set_disabled(name, True), f"{name} is disabled; their tokens are refused.", as_json)


@user_group.command("enable")
@click.argument("name")
@json_option
def enable_user(name: str, as_json: bool) -> None:
    """Enable the user NAME again."""
    print_change(set_disabled(name, False), f"{name} is enabled.", as_json)


def set_disabled(name: str, disabled: bool) -> User:
    return call_server(lambda server: server.patch(api_path("users", name), {}, User, disabled=disabled))


@click.group("team")
def team_group() -> None:
    """Create teams and manage their members."""


@team_group.command("create")
@click.argument("name")
@json_option
def create_team(name: str, as_json: bool) -> None:
    """Create the team NAME, with you as its admin."""
    made = call_server(lambda server: server.post("/teams", NewTeam(name=name), Team))
    print_change(made, f"Team {name} was created; add members with: proctor team add {name} USER", as_json)


@team_group.command("list")
@json_option
def list_teams(as_json: bool) -> None:
    """List the teams you are a member of."""
    teams = call_server(lambda server: server.get("/teams", Page[Membership])).items
    if as_json:
        print_json(teams)
        return
    rows = [[each.team, each.role] for each in teams]
    print_table(("team", "role"), rows, "You are not in a team; create one with: proctor team create NAME")


@team_group.command("members")
@click.argument("team")
@json_option
def list_members(team: str, as_json: bool) -> None:
    """List the members of TEAM."""
    members = call_server(lambda server: server.get(api_path("teams", team, "members"), Page[Member])).items
    if as_json:
        print_json(members)
        return
    rows = [[each.user, each.role] for each in members]
    print_table(("user", "role"), rows, f"{team} has no members.")


@team_group.command("add")
@click.argument("team")
@click.argument("user")
@click.option("--admin", is_flag=True, help="Let them add and remove members.")
@json_option
def add_member(team: str, user: str, admin: bool, as_json: bool) -> None:
    """Add USER to TEAM, or change their role."""
    member = Member(user=user, role="admin" if admin else "member")
    kept = call_server(lambda server: server.put(api_path("teams", team, "members"), member, Member))
    print_change(kept, f"{user} is {'an admin' if admin else 'a member'} of {team}.", as_json)


@team_group.command("remove")
@click.argument("team")
@click.argument("user")
@json_option
def remove_member(team: str, user: str, as_json: bool) -> None:
    """Remove USER from TEAM."""
    call_server(lambda server: server.delete(api_path("teams", team, "members", user)))
    print_change({"team": team, "user": user}, f"{user} is no longer in {team}.", as_json)


@click.group("token")
def token_group() -> None:
    """Create, list and revoke tokens."""


@token_group.command("create")
@click.argument("name", default="")
@click.option(
    "-s",
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    help="What the token allows; repeatable. [default: everything you may do, except admin]",
)
@click.option("--expires-days", type=FiniteRange(min=0, min_open=True), metavar="N", help="[default: 90]")
@click.option("--no-expiry", is_flag=True, help="Valid until it is revoked.")
@click.option(
    "--host",
    metavar="HOST",
    help="A token for `proctor runner` on another machine, which plays this server's runs; for admins.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the token to a file that only you can read.")
@json_option
def create_token(
    name: str,
    scopes: tuple[Scope, ...],
    expires_days: float | None,
    no_expiry: bool,
    host: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Create a token called NAME and print it; it is shown only once.

    \b
    proctor token create ci --scope environments:read --scope runs:write --expires-days 30
    proctor token create --host big-machine -o host-token
    """
    if as_json and output is not None:
        raise ConfigError("--json and --output both say where the token goes; give one of them.")
    if no_expiry and expires_days is not None:
        raise ConfigError("--expires-days and --no-expiry exclude each other; give one of them.")
    if host is not None:
        if name or scopes or no_expiry or expires_days is not None:
            raise ConfigError("A host's token has neither scopes nor an expiry; give --host NAME alone.")
        create_host_token(host, output, as_json)
        return
    new = NewToken(
        name=name,
        scopes=list(scopes) or None,
        expires_in_days=None if no_expiry else expires_days or DAYS,
    )
    with open_secret_output(output) as out:
        made = call_server(lambda server: server.post("/tokens", new, TokenWithSecret))
        if as_json:
            print_json(made)
            return
        until = describe_expiry(made.token.expires_at, time.time())
        echo(f"Token {made.token.id} is good {until}; {describe_output(output)}", err=True)
        echo(made.secret, out)


def create_host_token(host: str, output: str | None, as_json: bool) -> None:
    with open_secret_output(output) as out:
        made = call_server(lambda server: server.post("/hosts", NewHost(host), HostToken))
        if as_json:
            print_json(made)
            return
        echo(
            f"The first runner that uses this token within a day plays runs as {host}; "
            f"{describe_output(output)}",
            err=True,
        )
        echo(made.token, out)


def open_secret_output(output: str | None) -> AbstractContextManager[TextIO | None]:
    """Where a secret goes: stdout, or a file that is created before the secret is."""
    return create_private_file(output) if output is not None else nullcontext()


def describe_output(output: str | None) -> str:
    return "it is shown this once:" if output is None else f"it is in {output}."


@token_group.command("list")
@click.option("--hosts", is_flag=True, help="List the tokens of machines that play runs; for admins.")
@json_option
def list_tokens(hosts: bool, as_json: bool) -> None:
    """List your tokens. Their secrets cannot be shown again."""
    tokens = call_server(lambda server: server.get("/hosts" if hosts else "/tokens", Page[Token])).items
    if as_json:
        print_json(tokens)
        return
    rows = [
        [
            token.id,
            token.name or "–",
            format_day(token.last_used_at),
            format_day(token.expires_at),
            "plays runs" if hosts else ", ".join(token.scopes),
        ]
        for token in tokens
    ]
    columns = ("id", "name", "last used", "expires", TableColumn("scopes", may_shrink=True))
    print_table(columns, rows, "You have no tokens.")


@token_group.command("revoke")
@click.argument("token_id", metavar="ID")
@json_option
def revoke_token(token_id: str, as_json: bool) -> None:
    """Revoke the token ID: one of your own or, for admins, a host's."""
    call_server(lambda server: server.delete(api_path("tokens", token_id)))
    print_change({"id": token_id}, f"Token {token_id} is revoked.", as_json)
