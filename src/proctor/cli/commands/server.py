"""`proctor server` and `proctor runner`: hosted evaluations on your own machines."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.views.escape import echo
from proctor.client.contexts import Context
from proctor.errors import ConfigError, describe_os_error
from proctor.isolation.limits import RunLimits
from proctor.runner.host_settings import HostSettings, HostStartup
from proctor.runner.launch import NO_SANDBOX, has_bubblewrap
from proctor.runner.supervisor import run_supervised
from proctor.server.settings import ConnectionLimits, Quotas, Settings

if TYPE_CHECKING:
    from proctor.server.db.database import Database
    from proctor.server.server import OpenedServer

folder = click.Path(file_okay=False, path_type=Path)
positive = click.IntRange(min=1)
DEFAULT_DATA = "./proctor-data"


def check_networks(_: click.Context, __: click.Parameter, networks: tuple[str, ...]) -> tuple[str, ...]:
    for each in networks:
        try:
            ip_network(each)
        except ValueError as error:
            raise click.BadParameter(f"{error}; give one such as 10.0.0.7 or 10.0.0.0/24.") from error
    return networks


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
    help="Folder of everything the server keeps.",
)
@click.option("--database", metavar="URL", help="postgresql://… instead of a SQLite file in the data folder.")
@click.option("--public-url", metavar="URL", help="How others reach the server, if not by host and port.")
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
    help="Offer the embedded model, if it is installed; it shares the server's processor.",
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
    help="Who may run environments without a policy of their own: all who may read them, or only those who "
    "may change them.",
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
    help="Rows and log lines that the server keeps of one run.",
)
@click.option(
    "--user-storage-mb",
    default=51_200,
    show_default=True,
    type=positive,
    help="Pushed versions and runs that the server keeps of one user.",
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
    help="Connections in all; without it, as many as the limit of open files allows.",
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
    help="Address or network of a reverse proxy, through which many people come.",
)
@click.option("--run-memory-mb", default=4096, show_default=True, type=positive, help="Memory of one run.")
@click.option("--run-disk-mb", default=4096, show_default=True, type=positive, help="Disk space of one run.")
@click.option(
    "--lease-seconds",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=1.0),
    help="Another host takes over a run whose host has been silent for this long.",
)
@click.option(
    "--most-crashes",
    default=3,
    show_default=True,
    type=positive,
    help="A run fails that crashes so often with nothing finished in between.",
)
@click.option(
    "--default-balance",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="What new users may spend on models, and teams nothing; without it nothing limits them.",
)
@click.option(
    "--allow-endpoint-host",
    "allowed_endpoint_hosts",
    multiple=True,
    metavar="HOST",
    help="A host that runs may name as their own endpoint although it is not on the public internet.",
)
@click.option(
    "--allow-source-host",
    "source_hosts",
    multiple=True,
    metavar="HOST",
    help="A host of git repositories that is not on the public internet.",
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
    "`none` looks nothing up.",
)
@click.option(
    "--allow-name",
    "allowed_names",
    multiple=True,
    metavar="NAME",
    help="A name that may be pushed although the main index has it.",
)
@click.option(
    "--allow-direct-host",
    "direct_hosts",
    multiple=True,
    metavar="HOST",
    help="A host from which wheels may be installed that a package names by their address.",
)
@click.option(
    "--forget-secrets",
    is_flag=True,
    help="Delete all secrets, if the key that sealed them is lost; without it such a server does not start.",
)
@click.option(
    "--detach",
    is_flag=True,
    help="Start it in the background; return when it answers. `proctor server stop` stops it.",
)
@click.pass_context
def server_command(
    context: click.Context,
    /,
    detach: bool,
    host: str,
    port: int,
    data: Path,
    run_memory_mb: int,
    run_disk_mb: int,
    connections: int | None,
    connections_per_address: int,
    trusted_proxies: tuple[str, ...],
    **words: Any,
) -> None:
    """Start a server: a hub of environments, hosted evaluations, one endpoint for every model.

    The first start makes the database and an admin, and a token to log in with.

    \b
    proctor server
    proctor server --detach
    proctor server --host 0.0.0.0 --data /srv/proctor --database postgresql://localhost/proctor
    proctor server rotate-key --data /srv/proctor
    """
    if context.invoked_subcommand is not None:
        return
    if detach:
        detach_server(data)
        return
    with server_packages():
        from proctor.server.server import create_http_server, open_server

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if words["main_index"] == "none":
        words["main_index"] = None
    listening = bind_socket(host, port)
    settings = Settings(
        data=data.resolve(),
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
    print_welcome(opened)
    if settings.runs_at_once and not settings.allow_no_sandbox and not has_bubblewrap():
        echo(f"Warning: {NO_SANDBOX}", err=True)
    create_http_server(opened.platform).run([listening])


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


data_option = click.option(
    "--data", default=DEFAULT_DATA, show_default=True, type=folder, help="The server's data folder."
)
database_option = click.option(
    "--database", metavar="URL", help="postgresql://… instead of a SQLite file in the data folder."
)


@server_command.command("stop")
@data_option
def stop_command(data: Path) -> None:
    """Stop the server that uses a data folder; returns once it has ended.

    Runs that it was playing continue at its next start.

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
    """Give a server that is stopped a new key, and seal every secret anew with it.

    All of it or nothing: interrupted at any moment, the server opens with the old key or with the new one.

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
    """Make another token for one login of the admin, if every token of theirs is lost.

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


@contextmanager
def server_packages() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"The server needs packages that are not installed ({error.name}); "
            f"install them with: pip install 'proctor[server]'"
        ) from error


@contextmanager
def opened_database(data: Path, url: str | None) -> Iterator[Database]:
    """The database of a server that was started before."""
    with server_packages():
        from proctor.server.db.database import Database, sqlite_url
        from proctor.server.db.migrate import migrate

    file = data / "proctor.db"
    if not data.is_dir() or (url is None and not file.exists()):
        raise ConfigError(f"No server in {data}; name its folder with --data.")
    known = Database(url or sqlite_url(file))
    try:
        migrate(known)
        yield known
    finally:
        known.close()


def bind_socket(host: str, port: int) -> socket.socket:
    """The socket to listen on: whether it can be had is known before anything is made."""
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


def shorten_path(file: Path) -> Path:
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


@click.command("runner")
@click.option("--server", "url", required=True, metavar="URL", help="The server to play runs for.")
@click.option(
    "--token-file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with a host's token, as `proctor token create --host NAME` makes it.",
)
@click.option("--data", default="./proctor-runner", show_default=True, type=folder, help="Folder to work in.")
@click.option("--runs-at-once", default=2, show_default=True, type=positive, help="Runs at the same time.")
@click.option("--run-memory-mb", default=4096, show_default=True, type=positive, help="Memory of one run.")
@click.option("--run-disk-mb", default=4096, show_default=True, type=positive, help="Disk space of one run.")
@click.option("--allow-no-sandbox", is_flag=True, help="Play environments without walls.")
@click.option(
    "--allow-direct-host",
    "direct_hosts",
    multiple=True,
    metavar="HOST",
    help="A host from which wheels may be installed that a package names by their address.",
)
def runner_command(
    url: str,
    token_file: Path,
    data: Path,
    runs_at_once: int,
    run_memory_mb: int,
    run_disk_mb: int,
    allow_no_sandbox: bool,
    direct_hosts: tuple[str, ...],
) -> None:
    """Play hosted runs of a server on this machine, until it is ended with Ctrl-C.

    What it was playing then goes on elsewhere. An admin of the server makes the token.

    \b
    proctor token create --host big-machine -o host-token
    proctor runner --server https://proctor.example.com --token-file host-token
    """
    if not (allow_no_sandbox or has_bubblewrap()):
        raise ConfigError(NO_SANDBOX)
    settings = HostSettings(
        data=data.resolve(),
        at_once=runs_at_once,
        limits=RunLimits(memory_mb=run_memory_mb, disk_mb=run_disk_mb),
        allow_no_sandbox=allow_no_sandbox,
        direct_hosts=direct_hosts,
    )
    context = Context(url=url.rstrip("/"), token=token_file.read_text().strip())
    echo(f"Playing runs of {context.url}, {runs_at_once} at once, in {data}; Ctrl-C ends it.")
    run_supervised(HostStartup(context=context, settings=settings, parent=os.getpid()))
