"""`proctor runner`: a server's hosted runs, on this machine or on the nodes of a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from proctor.cli.commands.server_options import (
    direct_hosts_option,
    folder,
    log_format_option,
    metrics_option,
    positive,
)
from proctor.cli.commands.shared_options import FiniteRange
from proctor.cli.views.escape import echo
from proctor.client.contexts import Context
from proctor.cluster.address import parse_address
from proctor.errors import ConfigError
from proctor.isolation.limits import RunLimits
from proctor.runner.host_settings import ClusterSettings, HostSettings, HostStartup
from proctor.runner.launch import NO_SANDBOX, has_bubblewrap
from proctor.runner.supervisor import run_supervised
from proctor.support.logs import log
from proctor.support.metrics_address import MetricsAddress
from proctor.support.structured_logs import LogFormat, set_up_logging

cpus = FiniteRange(min=0, min_open=True)
amount = FiniteRange(min=0)
RUNS_HERE, RUNS_ON_CLUSTER = 2, 10_000


@click.command("runner")
@click.option("--server", "url", required=True, metavar="URL", help="The server to play runs for.")
@click.option(
    "--token-file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with a host's token, as created by `proctor token create --host NAME`.",
)
@click.option("--data", default="./proctor-runner", show_default=True, type=folder, help="Folder to work in.")
@click.option(
    "--runs-at-once",
    type=positive,
    show_default="2; on a cluster, as many as fit",
    help="Runs at the same time.",
)
@click.option("--run-memory-mb", default=4096, show_default=True, type=positive, help="Memory of one run.")
@click.option("--run-disk-mb", default=4096, show_default=True, type=positive, help="Disk space of one run.")
@click.option("--allow-no-sandbox", is_flag=True, help="Play environments without a sandbox.")
@direct_hosts_option
@metrics_option
@log_format_option
@click.option(
    "--on",
    "cluster_address",
    metavar="PLACE",
    help="Play the runs on the nodes of a Ray cluster: `ray`, the one that this machine belongs to, or "
    "`ray://HOST:PORT`.",
)
@click.option("--run-cpus", type=cpus, metavar="N", help="On a cluster: CPUs of one run; 1 unless set.")
@click.option("--run-gpus", type=amount, metavar="N", help="On a cluster: GPUs that one run takes.")
@click.option(
    "--run-resource",
    "run_resources",
    multiple=True,
    metavar="NAME=AMOUNT",
    help="On a cluster: what else one run takes from its node, by a name that the cluster's owner gave.",
)
@click.option("--node-data", metavar="FOLDER", help="On a cluster: the folder to work in on each node.")
@click.option("--node-server", metavar="URL", help="On a cluster: the server, as the nodes reach it.")
@click.option(
    "--allow-no-control-groups",
    is_flag=True,
    help="On a cluster: use nodes that can limit each process of a run, but not a run as a whole.",
)
def runner_command(
    url: str,
    token_file: Path,
    data: Path,
    runs_at_once: int | None,
    run_memory_mb: int,
    run_disk_mb: int,
    allow_no_sandbox: bool,
    direct_hosts: tuple[str, ...],
    metrics: MetricsAddress | None,
    log_format: LogFormat,
    cluster_address: str | None,
    **on_cluster: Any,
) -> None:
    """Play a server's hosted runs on this machine, until you press Ctrl-C.

    Unfinished runs then continue elsewhere. An admin of the server creates the token. With --on, runs are
    played on the nodes of a cluster, and continue there when this process ends; restarted with the same
    --data folder, it finds them again.

    \b
    proctor token create --host big-machine -o host-token
    proctor runner --server https://proctor.example.com --token-file host-token
    proctor runner --server https://proctor.example.com --token-file host-token --on ray://head:6379
    """
    cluster = build_cluster_settings(cluster_address, url, **on_cluster)
    if not (allow_no_sandbox or has_bubblewrap()):
        if cluster is None:
            raise ConfigError(NO_SANDBOX)
        echo("Pushed versions are not checked here, since bubblewrap is not installed.", err=True)
    settings = HostSettings(
        data=data.resolve(),
        at_once=runs_at_once or (RUNS_HERE if cluster is None else RUNS_ON_CLUSTER),
        limits=RunLimits(memory_mb=run_memory_mb, disk_mb=run_disk_mb),
        allow_no_sandbox=allow_no_sandbox,
        direct_hosts=direct_hosts,
        metrics=metrics,
        log_format=log_format,
    )
    set_up_logging(log_format, "%(asctime)s %(levelname)s %(message)s")
    context = Context(url=url.rstrip("/"), token=token_file.read_text().strip())
    where = f"{settings.at_once} at once, in {data}" if cluster is None else f"on {cluster.address}"
    (log.info if log_format == "json" else echo)(f"Playing runs of {context.url}, {where}; Ctrl-C ends it.")
    run_supervised(HostStartup(context=context, settings=settings, cluster=cluster, parent=os.getpid()))


def build_cluster_settings(
    cluster_address: str | None,
    url: str,
    *,
    run_cpus: float | None,
    run_gpus: float | None,
    run_resources: tuple[str, ...],
    node_data: str | None,
    node_server: str | None,
    allow_no_control_groups: bool,
) -> ClusterSettings | None:
    """None to play on this machine."""
    given = {
        "cpus": run_cpus,
        "gpus": run_gpus,
        "resources": dict(map(parse_resource, run_resources)),
        "node_data": node_data,
        "url": node_server,
        "allow_no_control_groups": allow_no_control_groups,
    }
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value}
    if cluster_address is not None:
        chosen["url"] = (node_server or url).rstrip("/")
        return ClusterSettings(address=str(parse_address(cluster_address)), **chosen)
    if chosen:
        raise click.UsageError("Settings for the nodes of a cluster need --on, such as --on ray.")
    return None


def parse_resource(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not name or not 0 < value < float("inf"):
        raise click.UsageError(f"{text!r} is not NAME=AMOUNT, such as --run-resource sandbox=1.")
    return name, value
