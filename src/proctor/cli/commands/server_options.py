"""Options that the commands for a server's operator share."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import click

from proctor.support.metrics_address import MetricsAddress, parse_metrics_address

positive = click.IntRange(min=1)
folder = click.Path(file_okay=False, path_type=Path)
DEFAULT_DATA = "./proctor-data"
data_option = click.option(
    "--data", default=DEFAULT_DATA, show_default=True, type=folder, help="The server's data folder."
)
database_option = click.option(
    "--database",
    metavar="URL",
    envvar="PROCTOR_DATABASE",
    show_envvar=True,  # an address with a password is not for command lines, which others can see
    help="postgresql://… instead of a SQLite file in the data folder.",
)


def check_networks(_: click.Context, __: click.Parameter, networks: tuple[str, ...]) -> tuple[str, ...]:
    for each in networks:
        try:
            ip_network(each)
        except ValueError as error:
            raise click.BadParameter(f"{error}; give one such as 10.0.0.7 or 10.0.0.0/24.") from error
    return networks


def check_metrics(_: click.Context, __: click.Parameter, text: str | None) -> MetricsAddress | None:
    return None if text is None else parse_metrics_address(text)


direct_hosts_option = click.option(
    "--allow-direct-host",
    "direct_hosts",
    multiple=True,
    metavar="HOST",
    help="A host from which wheels may be installed that a package names by their address.",
)
metrics_option = click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    callback=check_metrics,
    help="Answer /metrics, for Prometheus, on a port of its own; without a host, for this machine only.",
)
log_format_option = click.option(
    "--log-format",
    default="text",
    show_default=True,
    type=click.Choice(["text", "json"]),
    help="The log as lines for people, or as one JSON object a line.",
)
