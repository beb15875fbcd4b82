"""`proctor eval push`: upload local runs; pushing one twice adds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.api.runs import run_page
from proctor.cli.commands.server_calls import call_server
from proctor.cli.commands.shared_options import dir_option, json_option
from proctor.cli.options import complete_parameter
from proctor.cli.views.escape import echo
from proctor.cli.views.formatting import format_quantity
from proctor.cli.views.stdout import print_json
from proctor.errors import ConfigError, ProctorError

if TYPE_CHECKING:
    from proctor.client.connection import ServerConnection


@click.command("push")
@click.argument("run", metavar="[RUN|latest]", required=False, shell_complete=complete_parameter)
@click.option("--all", "every", is_flag=True, help="Every run found here.")
@click.option("--env", metavar="NAME", help="The environment to list it under, such as owner/name.")
@click.option("--name", help="The run's name on the server.")
@click.option("--team", help="The team that owns it.")
@dir_option
@json_option
def push_command(
    run: str | None,
    every: bool,
    env: str | None,
    name: str | None,
    team: str | None,
    dirs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Upload a local run, named by its id or its folder, or all of them with --all.

    The environment need not be published. A run that you pushed before is updated.

    \b
    proctor eval push latest
    proctor eval push outputs/evals/gsm8k--local/1a2b3c4d --env ada/gsm8k
    """
    from proctor.listeners.upload import UploadNames, push_folder

    if every == (run is not None):
        raise ConfigError("Name one run, or pass --all.")
    folders = find_folders(run, dirs)
    names = UploadNames(environment=env, name=name, team=team)
    pushed: list[dict[str, Any]] = []
    failed = 0

    async def push_each(server: ServerConnection) -> None:
        nonlocal failed
        for folder in folders:
            try:
                info, sent = await push_folder(server, folder, names)
            except ProctorError as error:
                if len(folders) == 1:
                    raise
                failed += 1
                pushed.append({"folder": str(folder), "error": str(error)})
                echo(f"{folder}: {error}", err=True)
                continue
            pushed.append({"folder": str(folder), "run": info, "sent": sent})
            if not as_json:
                size = format_quantity(info.progress.settled, "rollout")
                echo(f"{info.id}  {info.environment}, {size}, from {folder}")
                echo(f"  {run_page(server.context.url, info.id)}")

    call_server(push_each)
    if as_json:
        print_json({"pushed": pushed})
    if failed:
        raise click.exceptions.Exit(1)


def find_folders(run: str | None, dirs: tuple[str, ...]) -> list[Path]:
    from proctor.store.index import find_run, join_with_or, run_folders, search_folders

    where = search_folders(dirs)
    if run is not None:
        return [find_run(run, where)]
    folders = run_folders(where)
    if not folders:
        raise ConfigError(f"No runs in {join_with_or(where)}; name another folder with --dir.")
    return folders
