"""`proctor server audit`: who changed what on a server, for its admins."""

from __future__ import annotations

import time

import click

from proctor.api.audit import AuditEntry
from proctor.api.common import Page
from proctor.cli.commands.server_calls import call_server
from proctor.cli.commands.shared_options import FiniteRange, json_option
from proctor.cli.views.formatting import format_moment, format_pairs
from proctor.cli.views.page import print_table
from proctor.cli.views.stdout import print_json

DAY = 86_400.0
MOST = 1000


@click.command("audit")
@click.option("--user", metavar="NAME", help="Only changes that NAME made.")
@click.option("--action", metavar="WORD", help="Only one action, such as token.add, or a kind: token.")
@click.option("--target", metavar="TEXT", help="Only targets that contain TEXT.")
@click.option("--days", type=FiniteRange(min=0), help="Only the last DAYS days.")
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="Show the newest N entries."
)
@json_option
def audit_command(
    user: str | None, action: str | None, target: str | None, days: float | None, limit: int, as_json: bool
) -> None:
    """Show who changed what on the server you are logged in to; for its admins.

    \b
    proctor server audit --user ada --days 7
    proctor server audit --action token
    """
    since = None if days is None else time.time() - days * DAY
    kind = f"{action}." if action is not None and "." not in action else action
    page = call_server(
        lambda server: server.get(
            "/audit", Page[AuditEntry], user=user, action=kind, target=target, since=since, limit=limit
        )
    )
    print_json(page.items) if as_json else show_entries(page.items)


def show_entries(entries: list[AuditEntry]) -> None:
    rows = [
        (
            format_moment(each.at),
            each.user or "(operator)",
            each.action,
            each.target,
            format_pairs({name: value for name, value in each.details.items() if value is not None}),
        )
        for each in entries
    ]
    print_table(("when", "who", "what", "of", "details"), rows, nothing="Nothing was changed that matches.")
