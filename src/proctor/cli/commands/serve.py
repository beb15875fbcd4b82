"""`proctor serve`: serve an environment on a control channel until you stop it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.views.escape import echo
from proctor.cli.views.stdout import print_json_line
from proctor.errors import ConfigError
from proctor.packages.serve_target import environment_at
from proctor.runtimes.serving import PORT, TOKEN_VARIABLE
from proctor.support.loop import raise_file_limit, run_in_loop

if TYPE_CHECKING:
    from proctor.env.templates import Environment

DEFAULT_SOURCES = ("env.py", "tasks.py", ".")


@click.command("serve")
@click.argument("source", required=False)
@click.option(
    "-p", "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes any."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--unix", "path", metavar="PATH", help="Listen on a Unix socket instead.")
@click.option("--env", "name", metavar="NAME", help="Which environment, if the source has several.")
@click.option(
    "--token",
    metavar="TOKEN",
    help=f"Token that clients must send; required if other machines can connect. Prefer {TOKEN_VARIABLE}: "
    "everyone on this machine can read command lines.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON.")
def serve_command(
    source: str | None,
    port: int,
    host: str,
    path: str | None,
    name: str | None,
    token: str | None,
    as_json: bool,
) -> None:
    """Serve the environment of SOURCE: a file (env.py, or file.py:name), a folder, or the name of one that is
    installed. Without SOURCE, the current folder is searched.

    \b
    proctor serve
    proctor serve env.py -p 9000
    proctor eval run tasks.py claude --runtime tcp://127.0.0.1:8765
    proctor task start count -a '{"word": "pear"}' -u tcp://127.0.0.1:8765
    """
    from proctor.channel.listen import is_loopback

    token = token or os.environ.pop(TOKEN_VARIABLE, None)  # nothing the environment starts needs to see it
    environment = environment_at(source or find_default_source(), name)
    if token is None:
        if path is None and not is_loopback(host):
            raise ConfigError(
                f"Anyone who reaches {host}:{port} could play; give --token or set {TOKEN_VARIABLE}."
            )
        if any(workspace.network for workspace in getattr(environment, "workspaces", ())):
            raise ConfigError(
                f"{environment.name!r} has a workspace with network, from which an agent could reach this "
                f"channel and grade itself; give --token, or set {TOKEN_VARIABLE}."
            )
    raise_file_limit()
    run_in_loop(serve(environment, host, port, path, token, as_json))


def find_default_source() -> str:
    for source in DEFAULT_SOURCES:
        if Path(source).is_file():
            return source
    return "."


async def serve(
    environment: Environment, host: str, port: int, path: str | None, token: str | None, as_json: bool
) -> None:
    from proctor.channel.listen import open_channel_server
    from proctor.channel.server import ServedEnvironment

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await environment.check()
    await environment.start()
    async with open_channel_server(
        ServedEnvironment(environment, token), host=host, port=port, path=path
    ) as url:
        announce(environment, url, as_json)
        await stopped.wait()


def announce(environment: Environment, url: str, as_json: bool) -> None:
    if as_json:
        about = {"url": url, "env": environment.name, "version": environment.version}
        print_json_line(about)
        return
    templates = ", ".join(environment.templates)
    echo(f"Serving {environment.name} {environment.version} ({templates}) at {url}")
    echo("Press Ctrl-C to stop.", err=True)
