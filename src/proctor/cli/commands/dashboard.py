"""`proctor dashboard`: open a server's dashboard in the browser, logged in by a one-time link."""

from __future__ import annotations

import os
import webbrowser
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from proctor.api.session import LoginCode, build_login_link
from proctor.cli.commands.login import normalize_server_url
from proctor.cli.commands.server_calls import call_server
from proctor.cli.commands.shared_options import json_option
from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import Context, need_context, read_contexts
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.client.connection import ServerConnection


@click.command("dashboard")
@click.argument("url", required=False)
@click.option("--no-browser", is_flag=True, help="Print the link instead of opening it.")
@json_option
def dashboard_command(url: str | None, no_browser: bool, as_json: bool) -> None:
    """Open the dashboard of the server at URL, or of the one you are logged in to.

    The link logs in one browser as you. It works once, within five minutes; do not pass it on. The session
    ends when you log out there, when you run `proctor logout` here, or after two weeks.

    \b
    proctor dashboard
    proctor dashboard https://proctor.example.com
    proctor dashboard --no-browser
    """
    context = need_context(os.environ) if url is None else find_login(normalize_server_url(url))

    async def make_code(server: ServerConnection) -> LoginCode:
        return await server.post("/session/codes", {}, LoginCode)

    made = call_server(make_code, context)
    made = replace(made, url=build_login_link(context.url, made.code))  # as this machine reaches the server
    if as_json:
        print_json(made)
    elif not no_browser and open_browser(made.url):
        echo(f"Opened {context.url} in your browser.")
    else:
        echo("Open this link; it works once, within five minutes:", err=True)
        echo(made.url)


def find_login(url: str) -> Context:
    """Your login at an address."""
    known = read_contexts(os.environ)
    found = [context for context in known.contexts.values() if context.url == url]
    if not found:
        raise ConfigError(f"You are not logged in to {url}; run `proctor login {url}` first.")
    current = known.contexts.get(known.current or "")
    return current if current in found else found[0]


def open_browser(url: str) -> bool:
    """Whether a browser was started; not on a machine that has none, or only one in the terminal."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    is_textual = getattr(browser, "name", "") in ("www-browser", "w3m", "links", "elinks", "lynx")
    return not is_textual and browser.open(url)
