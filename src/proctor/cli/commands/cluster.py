"""`proctor cluster`: which nodes a Ray cluster has, and whether they could work for you."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from proctor.cli.commands.shared_options import json_option
from proctor.cluster.address import parse_address
from proctor.support.loop import run_in_loop

if TYPE_CHECKING:
    from proctor.cluster.connect import Cluster

T = TypeVar("T")
EXIT_PROBLEMS = 1

on_option = click.option(
    "--on",
    default="ray",
    show_default=True,
    metavar="ray[://HOST[:PORT]]",
    help="The cluster this machine belongs to, or the address of another cluster's head.",
)


@click.group("cluster")
def cluster_group() -> None:
    """Look at a Ray cluster that runs may use with --on ray."""


@cluster_group.command("status")
@on_option
@json_option
def status_command(on: str, as_json: bool) -> None:
    """List the nodes of a cluster and what is free on them."""
    from proctor.cli.views.cluster import build_nodes_document, show_nodes
    from proctor.cli.views.stdout import print_json

    nodes = call(on, lambda cluster: cluster.nodes())
    if as_json:
        print_json(build_nodes_document(nodes))
    else:
        show_nodes(nodes)


@cluster_group.command("check")
@on_option
@click.option("--listen", default="", metavar="HOST", help="Address of this machine that nodes should reach.")
@json_option
def check_command(on: str, listen: str, as_json: bool) -> None:
    """Check whether each node could work: its Python, its Proctor, bubblewrap, and its route to this machine.

    Exits with 1 if a node could not.
    """
    from proctor.cli.views.cluster import build_reports_document, show_reports
    from proctor.cli.views.stdout import print_json
    from proctor.cluster.check import check_nodes

    reports = call(on, lambda cluster: check_nodes(cluster, listen))
    if as_json:
        print_json(build_reports_document(reports))
    else:
        show_reports(reports)
    sys.exit(0 if all(report.could_work for report in reports) else EXIT_PROBLEMS)


def call(on: str, work: Callable[[Cluster], Awaitable[T]]) -> T:
    from proctor.cluster.connect import connect

    async def main() -> Any:
        async with connect(parse_address(on)) as cluster:
            return await work(cluster)

    found: T = run_in_loop(main())
    return found
