"""`proctor server`: hosted evaluations on your own machines."""

from __future__ import annotations

import logging
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.commands.audit import audit_command
from proctor.cli.commands.backup import backup_command, restore_command
from proctor.cli.commands.server_options import (
    DEFAULT_DATA,
    check_networks,
    data_option,
    database_option,
    direct_hosts_option,
    folder,
    log_format_option,
    metrics_option,
    positive,
)
from proctor.cli.commands.shared_options import FiniteRange
from proctor.cli.commands.stopped_server import opened_database, server_packages, shorten_path
from proctor.cli.commands.storage import storage_command
from proctor.cli.views.escape import echo
from proctor.errors import ConfigError, describe_os_error
from proctor.isolation.limits import RunLimits
from proctor.runner.launch import NO_SANDBOX, has_bubblewrap
from proctor.server.settings import ConnectionLimits, Quotas, Settings
from proctor.support.logs import log
from proctor.support.loop import tune_garbage_collector
from proctor.support.structured_logs import set_up_logging

if TYPE_CHECKING:
    from proctor.server.server import OpenedServer


@click.group("server", invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8700, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 takes a free one."
)
@click.option(
    "--data",
    default=DEFAULT_DATA,
    show_default=True,
    type=folder,
    help="Folder for everything the server keeps.",
)
@database_option
@click.option(
    "--files",
    type=folder,
    help="Folder of pushed files and uploads, if several servers on one PostgreSQL share it.",
)
@click.option(
    "--peer-url",
    metavar="URL",
    help="How the other servers on the database reach this one, if not by host and port.",
)
@click.option(
    "--drain-seconds",
    default=0.0,
    show_default=True,
    type=FiniteRange(min=0.0),
    help="Keep answering for this long after SIGTERM, while /ready tells load balancers to go elsewhere.",
)
@click.option(
    "--storage",
    default="folder",
    show_default="the data folder",
    metavar="ADDRESS",
    help="Where pushed files are kept: s3://BUCKET/PREFIX for an object store, with its endpoint, region and "
    "credentials in AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
)
@click.option(
    "--storage-public-endpoint",
    metavar="URL",
    help="How clients reach the object store, if not by AWS_ENDPOINT_URL.",
)
@click.option(
    "--signed-downloads/--no-signed-downloads",
    default=True,
    help="Let clients fetch large files from the object store itself.",
)
@click.option(
    "--storage-cache-mb",
    default=10_240,
    show_default=True,
    type=positive,
    help="Copies of the object store's files that the data folder may hold.",
)
@click.option(
    "--public-url", metavar="URL", help="Address at which others reach the server, if not host and port."
)
@click.option(
    "--endpoints",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An endpoint registry of models to offer, besides the providers whose keys are set.",
)
@click.option(
    "--local-model/--no-local-model",
    "offer_local",
    default=True,
    help="Offer the embedded model, if it is installed; it shares the server's CPU.",
)
@click.option(
    "--runs-at-once",
    default=2,
    show_default=True,
    type=click.IntRange(min=0),
    help="Hosted runs that are played here at the same time; 0 leaves them to `proctor runner` elsewhere.",
)
@click.option(
    "--run-policy",
    default="readers",
    show_default=True,
    type=click.Choice(["readers", "writers"]),
    help="Who may run environments that have no policy of their own: everyone who may read them, or only "
    "those who may change them.",
)
@click.option("--runs-per-user", type=positive, metavar="N", help="Runs of one user at the same time.")
@click.option(
    "--pending-runs-per-user",
    default=100,
    show_default=True,
    type=positive,
    help="Runs of one user that may wait to be played.",
)
@click.option(
    "--run-storage-mb",
    default=2048,
    show_default=True,
    type=positive,
    help="Storage for the rows and log lines of one run.",
)
@click.option(
    "--user-storage-mb",
    default=51_200,
    show_default=True,
    type=positive,
    help="Storage for the pushed versions and runs of one user.",
)
@click.option(
    "--streams-per-user",
    default=100,
    show_default=True,
    type=positive,
    help="Event streams and downloads that one user may have open.",
)
@click.option(
    "--connections",
    type=positive,
    metavar="N",
    help="Connections in total. [default: as many as the limit on open files allows]",
)
@click.option(
    "--connections-per-address",
    default=500,
    show_default=True,
    type=positive,
    help="Connections from one address, except this machine's own and trusted proxies.",
)
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    metavar="ADDRESS",
    callback=check_networks,
    help="Address or network of a reverse proxy that many people connect through; repeatable.",
)
@click.option("--run-memory-mb", default=4096, show_default=True, type=positive, help="Memory of one run.")
@click.option("--run-disk-mb", default=4096, show_default=True, type=positive, help="Disk space of one run.")
@click.option(
    "--lease-seconds",
    default=30.0,
    show_default=True,
    type=FiniteRange(min=1.0),
    help="Another host takes over a run whose host has been silent for this long.",
)
@click.option(
    "--most-crashes",
    default=3,
    show_default=True,
    type=positive,
    help="A run fails after this many crashes with nothing finished in between.",
)
@click.option(
    "--default-balance",
    type=FiniteRange(min=0),
    metavar="USD",
    help="What new users may spend on models; new teams get nothing. Without it, there is no limit.",
)
@click.option(
    "--allow-endpoint-host",
    "allowed_endpoint_hosts",
    multiple=True,
    metavar="HOST",
    help="A host that runs may use as their own endpoint, even if it is not on the public internet.",
)
@click.option(
    "--allow-source-host",
    "source_hosts",
    multiple=True,
    metavar="HOST",
    help="A host of git repositories to allow, even if it is not on the public internet.",
)
@click.option(
    "--allow-source-path",
    "source_paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="A folder on this machine whose git repositories users may add as sources.",
)
@click.option(
    "--allow-no-sandbox",
    is_flag=True,
    help="Run environments without a sandbox if bubblewrap is missing.",
)
@click.option(
    "--main-index",
    default="pip",
    show_default="those of pip on this machine",
    metavar="URL",
    help="Index whose names cannot be pushed, since packages from here could be installed in their place; "
    "`none` turns this check off.",
)
@click.option(
    "--allow-name",
    "allowed_names",
    multiple=True,
    metavar="NAME",
    help="A name that may be pushed even though the main index has it.",
)
@direct_hosts_option
@metrics_option
@log_format_option
@click.option(
    "--forget-secrets",
    is_flag=True,
    help="Delete all secrets if the key that sealed them is lost; otherwise such a server does not start.",
)
@click.option(
    "--detach",
    is_flag=True,
    help="Start in the background and return once the server answers. `proctor server stop` stops it.",
)
@click.pass_context
def server_command(
    context: click.Context,
    /,
    detach: bool,
    host: str,
    port: int,
    data: Path,
    files: Path | None,
    run_memory_mb: int,
    run_disk_mb: int,
    connections: int | None,
    connections_per_address: int,
    trusted_proxies: tuple[str, ...],
    **words: Any,
) -> None:
    """Start a server: a hub of environments, hosted evaluations, and one endpoint for every model.

    The first start creates the database, an admin, and a token to log in with.

    \b
    proctor server
    proctor server --detach
    proctor server --host 0.0.0.0 --data /srv/proctor --database postgresql://localhost/proctor
    proctor server --database postgresql://db/proctor --files /mnt/shared --public-url https://proctor.example.com
    proctor server rotate-key --data /srv/proctor
    """
    if context.invoked_subcommand is not None:
        return
    if detach:
        detach_server(data)
        return
    with server_packages():
        from proctor.server.server import create_http_server, open_server

    set_up_logging(words["log_format"], "%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if words["main_index"] == "none":
        words["main_index"] = None
    listening = bind_socket(host, port)
    settings = Settings(
        data=data.resolve(),
        files=None if files is None else files.resolve(),
        host=host,
        port=listening.getsockname()[1],
        limits=RunLimits(memory_mb=run_memory_mb, disk_mb=run_disk_mb),
        connections=ConnectionLimits(
            in_all=connections, per_address=connections_per_address, trusted_proxies=trusted_proxies
        ),
        quotas=Quotas(**{name: words.pop(name) for name in Quotas.__struct_fields__}),
        default_balance_usd=words.pop("default_balance"),
        **words,
    )
    opened = open_server(settings)
    if settings.log_format == "json":
        log.info("Proctor is at %s", settings.url)
        if opened.first_token is not None:
            log.info("the admin's token for one login is in %s", opened.token_file)
    else:
        print_welcome(opened)
    if settings.runs_at_once and not settings.allow_no_sandbox and not has_bubblewrap():
        log.warning(NO_SANDBOX)
    server = create_http_server(opened.platform)
    tune_garbage_collector()
    server.run([listening])


def detach_server(data: Path) -> None:
    """Start the same command again, in the background."""
    from proctor.server.detached import LOG_FILE, start_detached

    with server_packages():
        from proctor.server.people.first_login import TOKEN_FILE

    words = [word for word in sys.argv[sys.argv.index("server") + 1 :] if word != "--detach"]
    running = start_detached(words, data.resolve())
    echo(f"Proctor is at {running.url}, in the background (process {running.pid}).")
    token = data / TOKEN_FILE
    rows = {
        **({"log in": f"proctor login {running.url} --token-file {token}"} if token.exists() else {}),
        "its log": str(data / LOG_FILE),
        "stop it": f"proctor server stop{describe_data_flag(data)}",
    }
    for label, text in rows.items():
        echo(f"  {label:9}{text}")


def describe_data_flag(data: Path) -> str:
    return "" if data == Path(DEFAULT_DATA) else f" --data {data}"


server_command.add_command(audit_command)
server_command.add_command(backup_command)
server_command.add_command(restore_command)
server_command.add_command(storage_command)


@server_command.command("stop")
@data_option
def stop_command(data: Path) -> None:
    """Stop the server that uses a data folder, and return once it has ended.

    Its runs continue when it starts again.

    \b
    proctor server stop
    proctor server stop --data /srv/proctor
    """
    from proctor.server.detached import stop_server

    stopped = stop_server(data.resolve())
    echo(f"Stopped the server at {stopped.url}.")


@server_command.command("rotate-key")
@data_option
@database_option
def rotate_key_command(data: Path, database: str | None) -> None:
    """Give a stopped server a new key, and seal every secret again with it.

    All or nothing: if this is interrupted, the server opens with either the old key or the new one.

    \b
    proctor server rotate-key --data /srv/proctor
    """
    with server_packages():
        from proctor.server.secrets.key_lock import KeyLock
        from proctor.server.secrets.rotation import rotate
        from proctor.server.secrets.vault import key_file

    data = data.resolve()
    with opened_database(data, database) as known:
        lock = KeyLock(data, known, alone=True)
        try:
            done = rotate(known, key_file(data, os.environ))
        finally:
            lock.close()
    echo(f"A new key is in {shorten_path(key_file(data, os.environ))}; it sealed {done.values} values.")
    if done.left:
        echo(
            f"Warning: {done.left} values could not be opened with the old key, and stay as they were.",
            err=True,
        )


@server_command.command("admin-token")
@data_option
@database_option
def admin_token_command(data: Path, database: str | None) -> None:
    """Create a token for one login as the admin, if all of the admin's tokens are lost.

    \b
    proctor server admin-token --data /srv/proctor
    """
    with server_packages():
        from proctor.server.people import first_login

    data = data.resolve()
    with opened_database(data, database) as known:
        file = first_login.write_token(data, known.write_now(first_login.new_login))
    echo(
        f"A token for one login is in {shorten_path(file)}: "
        f"proctor login URL --token-file {shorten_path(file)}"
    )


def bind_socket(host: str, port: int) -> socket.socket:
    """The socket to listen on, bound before anything is created so that a taken port is reported first."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = describe_os_error(error)
        raise ConfigError(
            f"Cannot listen on {host}:{port} ({why}); choose another --port or --host."
        ) from error


def print_welcome(opened: OpenedServer) -> None:
    settings = opened.platform.settings
    echo(f"Proctor is at {settings.url}")
    if opened.first_token is not None:
        file = shorten_path(opened.token_file)
        echo(f"The admin's token for one login is in {file}.")
        if sys.stdout.isatty():  # logs are kept, and read by others
            echo(f"\n  {opened.first_token}\n")
        echo(f"Log in with it: proctor login {settings.url} --token-file {file}")
        if sys.stdout.isatty():
            echo(f"Or open the dashboard, once and within the hour: {opened.first_link}")
