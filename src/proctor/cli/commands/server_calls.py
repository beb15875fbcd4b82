"""Call the server you are logged in to, and print its answer as JSON or as text.

Knows nothing of what the requests are about.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from proctor.api.common import LINK_HEADER
from proctor.cli.views.escape import echo
from proctor.cli.views.formatting import format_day
from proctor.cli.views.stdout import print_json
from proctor.client.contexts import need_context
from proctor.errors import ConfigError
from proctor.support.loop import run_in_loop

if TYPE_CHECKING:
    from proctor.client.connection import ServerConnection
    from proctor.client.contexts import Context

T = TypeVar("T")

TRIES = 6
DAY = 86_400.0


def call_server(
    work: Callable[[ServerConnection], Awaitable[T]], context: Context | None = None, *, tries: int = TRIES
) -> T:
    """Run `work` with a connection to the current server, or to the one in `context`."""
    from proctor.client.connection import ServerConnection

    async def main() -> T:
        async with ServerConnection(context or need_context(os.environ), tries=tries) as server:
            return await work(server)

    return run_in_loop(main())


def call_for_run(word: str, work: Callable[[ServerConnection, str], Awaitable[T]]) -> T:
    """Run `work` for a run: one on the current server by its id or name, or one on any server by its link."""
    from proctor.client.connection import ServerConnection
    from proctor.client.contexts import Context
    from proctor.client.runs import parse_link, resolve_run

    shared = parse_link(word)
    if shared is None:

        async def on_current(server: ServerConnection) -> T:
            return await work(server, await resolve_run(server, word))

        return call_server(on_current)

    async def main() -> T:
        headers = {LINK_HEADER: shared.link}
        context = Context(url=shared.server_url)  # without a login: the link is enough
        async with ServerConnection(context, tries=TRIES, headers=headers) as server:
            return await work(server, shared.run_id)

    return run_in_loop(main())


def api_path(*segments: str) -> str:
    """A path of the API; each argument stays one segment, whatever the user typed."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


def environment_path(slug: str, *segments: str) -> str:
    owner, slash, name = slug.partition("/")
    if not (owner and slash and name) or "/" in name or "@" in name:
        raise ConfigError(f"{slug!r} is not an environment of a hub; write owner/name.")
    return api_path("environments", owner, name, *segments)


# Answers


def print_change(value: Any, sentence: str, as_json: bool) -> None:
    """Print the result of a change: as JSON the new state, as text a sentence."""
    if as_json:
        print_json(value)
    else:
        echo(sentence)


def describe_expiry(at: float | None, now: float) -> str:
    if at is None:
        return "until it is revoked"
    left = (at - now) / DAY
    return "expired" if left < 0 else f"until {format_day(at)}, {left:.0f} days"
