"""One call to the server that one is logged in to, and its answer for programs or for people.

Knows nothing of what is asked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import click
import msgspec

from proctor.cli.views.escape import echo, echo_encoded
from proctor.client.contexts import need_context
from proctor.errors import ConfigError
from proctor.support.loop import run_in_loop

if TYPE_CHECKING:
    from proctor.cli.views.page import TableRow
    from proctor.client.connection import ServerConnection
    from proctor.client.contexts import Context

T = TypeVar("T")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask whether that is meant.")
TRIES = 6
HELP = {"help_option_names": ["-h", "--help"]}
DAY = 86_400.0


def call_server(
    work: Callable[[ServerConnection], Awaitable[T]], context: Context | None = None, *, tries: int = TRIES
) -> T:
    """Do some work with a server: the one in use, unless another is given."""
    from proctor.client.connection import ServerConnection

    async def main() -> T:
        async with ServerConnection(context or need_context(os.environ), tries=tries) as server:
            return await work(server)

    return run_in_loop(main())


def api_path(*segments: str) -> str:
    """A path of the API; what somebody typed stays one segment of it."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


def environment_path(slug: str, *segments: str) -> str:
    owner, slash, name = slug.partition("/")
    if not (owner and slash and name) or "/" in name or "@" in name:
        raise ConfigError(f"{slug!r} is no environment of a hub; write owner/name.")
    return api_path("environments", owner, name, *segments)


def confirm(question: str, yes: bool) -> bool:
    return yes or click.confirm(question, err=True)


# Answers


def print_json(value: Any) -> None:
    echo_encoded(msgspec.json.format(msgspec.json.encode(value)))


def print_change(value: Any, sentence: str, as_json: bool) -> None:
    """What came of a change: for programs the thing as it is now, for people a sentence."""
    if as_json:
        print_json(value)
    else:
        echo(sentence)


def show_table(names: Sequence[str], rows: Iterable[TableRow], nothing: str) -> None:
    """A table, or a sentence on stderr where it would be empty."""
    from proctor.cli.views.page import TableColumn, layout_table, page_width, print_lines

    rows = list(rows)
    if not rows:
        echo(nothing, err=True)
        return
    last = names[-1]
    columns = [TableColumn(name, may_shrink=name == last and len(names) > 1) for name in names]
    print_lines(layout_table(columns, rows, page_width()))


def format_day(at: float | None, never: str = "never") -> str:
    return never if at is None else time.strftime("%Y-%m-%d", time.localtime(at))


def describe_expiry(at: float | None, now: float) -> str:
    if at is None:
        return "until it is revoked"
    left = (at - now) / DAY
    return "expired" if left < 0 else f"until {format_day(at)}, {left:.0f} days"
