"""`proctor login`, `logout` and `whoami`: your identity on a server.

The pasted token is only used to create another, which is named after this machine, ends with the login
and can be revoked without touching the first. Knows nothing of how contexts are kept.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
import msgspec

from proctor.api.people import SCOPES, NewToken, TokenWithSecret, Whoami
from proctor.cli.commands.server_calls import DAY, api_path, call_server, describe_expiry, print_change
from proctor.cli.commands.shared_options import json_option
from proctor.cli.hidden import read_hidden
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import (
    CONTEXT_VARIABLE,
    KEY_VARIABLE,
    NOT_LOGGED_IN,
    URL_VARIABLE,
    Context,
    need_context,
    read_contexts,
    write_contexts,
)
from proctor.config.api_addresses import is_on_this_machine
from proctor.errors import ConfigError
from proctor.support.loop import run_in_loop

if TYPE_CHECKING:
    from proctor.api.people import Whoami
    from proctor.client.connection import ServerConnection
    from proctor.client.contexts import Context, Contexts

LONGEST_DAYS = 90.0
LOCAL = "local"
FIRST_TOKEN = "admin-token"
"""The file of the token that a new server creates for its first login."""


@click.command("login")
@click.argument("url", required=False)
@click.option("--context", "name", metavar="NAME", help="What to call this login. [default: the host]")
@click.option("--token-file", metavar="FILE", help="Read the token from a file; - is stdin.")
@json_option
def login_command(url: str | None, name: str | None, token_file: str | None, as_json: bool) -> None:
    """Log in to the server at URL, or renew your current login.

    You are prompted for the token, or it is read from stdin; an admin of the server creates the first one.

    \b
    proctor login https://proctor.example.com
    proctor login http://127.0.0.1:8700 --token-file proctor-data/admin-token
    """
    known = read_contexts(os.environ)
    name = name or os.environ.get(CONTEXT_VARIABLE)
    url = normalize_server_url(url) if url else url_of_login(known, name)
    if urlsplit(url).scheme == "http" and not is_local(url):
        echo(f"Warning: others can read what is sent to {url}; use https if you can.", err=True)
    check_first_token(token_file)
    pasted = read_hidden("token", file=token_file, environ=os.environ, is_file_option="--token-file").strip()
    name = name or choose_login_name(known, url)
    before = known.contexts.get(name)
    team = before.team if before is not None and before.url == url else None

    async def log_in(server: ServerConnection) -> tuple[Whoami, Context]:
        me = await server.get("/whoami", Whoami)
        return me, await create_login_context(server, me, team)

    me, context = call_server(log_in, Context(url=url, token=pasted), tries=2)
    write_contexts(os.environ, known.with_context(name, context))
    if before is not None:
        revoke_login_token(before)
    logged_in = {"context": name, "url": url, "user": me.user.name}
    print_change(logged_in, f"Logged in to {url} as {me.user.name}; the context is called {name}.", as_json)
    if not context.is_own_token:
        echo("This token itself is stored, since it cannot create another: it lacks tokens:write.", err=True)
    for variable in (URL_VARIABLE, KEY_VARIABLE):
        if os.environ.get(variable):
            echo(f"Warning: {variable} is set and overrides this login; unset it.", err=True)


async def create_login_context(server: ServerConnection, me: Whoami, team: str | None) -> Context:
    """A login with a token of its own, good for the same and no longer than the one that makes it."""
    url = server.context.url
    if "tokens:write" not in me.token.scopes:
        return Context(url=url, token=server.context.token, team=team)
    left = LONGEST_DAYS
    if me.token.expires_at is not None:
        left = min(left, (me.token.expires_at - time.time()) / DAY)
    new = NewToken(name=f"login on {socket.gethostname()}", scopes=me.token.scopes, expires_in_days=left)
    made = await server.post("/tokens", new, TokenWithSecret)
    return Context(url=url, token=made.secret, team=team, is_own_token=True)


def normalize_server_url(url: str) -> str:
    url = url if "://" in url else f"{'http' if is_local(f'//{url}') else 'https'}://{url}"
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one or "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(f"{url.rpartition('@')[2]!r} is not a server address; write https://host.")
    return url.rstrip("/")


def is_local(url: str) -> bool:
    try:
        return is_on_this_machine(url)
    except ValueError:
        return False


def check_first_token(file: str | None) -> None:
    """Explain where the token of a new server went: its file is the one that the README names."""
    if file is not None and Path(file).name == FIRST_TOKEN and not Path(file).exists():
        raise ConfigError(
            f"There is no {file}: its token works for one login, which deletes the file. To create another, "
            f"run `proctor server admin-token` on the server's machine."
        )


def url_of_login(known: Contexts, name: str | None) -> str:
    """Where to log in anew."""
    name = name or known.current
    if name is None:
        raise ConfigError("Which server? Give its address: proctor login URL.")
    return known.find(name).url


def choose_login_name(known: Contexts, url: str) -> str:
    """The default name of a login: its previous name, or the host."""
    for name, context in known.contexts.items():
        if context.url == url:
            return name
    parts = urlsplit(url)
    host = LOCAL if is_local(url) else parts.hostname or url
    return host if host not in known.contexts else f"{host}-{parts.port or parts.scheme}"


@click.command("logout")
@click.option("--context", "name", metavar="NAME", help="Which login. [default: the one in use]")
@json_option
def logout_command(name: str | None, as_json: bool) -> None:
    """Forget a login, and revoke the token that was created for it."""
    known = read_contexts(os.environ)
    name = name or os.environ.get(CONTEXT_VARIABLE) or known.current
    if name is None:
        raise ConfigError(NOT_LOGGED_IN)
    context = known.find(name)
    write_contexts(os.environ, known.without(name))
    revoke_login_token(context)
    print_change({"context": name, "url": context.url}, f"Logged out of {context.url}.", as_json)


def revoke_login_token(context: Context) -> None:
    """Revoke the login's token; an unreachable server does not prevent logging out."""
    from proctor.client.connection import ServerConnection, ServerError

    if not context.is_own_token:
        return
    token_id = context.token.split("_")[1]

    async def give_back() -> None:
        async with ServerConnection(context, tries=1) as server:
            await server.delete(api_path("tokens", token_id))

    try:
        run_in_loop(give_back())
    except ServerError as error:
        if error.status != 401:  # already invalid
            echo(f"Warning: the token {token_id} was not revoked: {error}", err=True)


@click.command("whoami")
@json_option
def whoami_command(as_json: bool) -> None:
    """Show who you are on the current server and what your token allows."""
    context = need_context(os.environ)
    me = call_server(lambda server: server.get("/whoami", Whoami), context)
    if as_json:
        print_json({"url": context.url, "context_team": context.team, **msgspec.to_builtins(me)})
        return
    teams = ", ".join(f"{each.team} ({each.role})" for each in me.teams) or "none"
    rows = [
        ("user", me.user.name + (" (admin of the server)" if me.user.is_admin else "")),
        ("server", f"{context.url} (Proctor {me.server_version})"),
        ("teams", teams),
        *([("for team", context.team)] if context.team else []),
        (
            "token",
            f"{me.token.name or me.token.id}, good {describe_expiry(me.token.expires_at, time.time())}",
        ),
    ]
    for label, value in rows:
        echo(f"{label:10}{value}")
    for number, scope in enumerate(SCOPES):
        has = "yes" if scope in me.token.scopes else "no"
        echo(f"{'scopes' if not number else '':10}{scope:20}{has}")
